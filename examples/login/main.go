// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command login is an MCP server for people who have an account somewhere else: at GitHub or
// at any OpenID provider, which know nothing of MCP clients. To try it with a provider of its
// own, where the user ada needs no password:
//
//	go run ./examples/login
//	go run ./mcp/cmd/psi call -login http://127.0.0.1:8080/mcp whoami
//
// With a real one, register http://127.0.0.1:8080/callback there, and name who may come in:
//
//	CLIENT_ID=… CLIENT_SECRET=… ALLOW="octocat hubot" go run ./examples/login
//	ISSUER=https://login.example.com CLIENT_ID=… CLIENT_SECRET=… ALLOW=ada@example.com go run ./examples/login
//
// On the internet, behind a proxy, RESOURCE is the public URL of the server, such as
// https://mcp.example.com/mcp. KEY is a secret of 32 bytes or more, which all replicas have;
// they also share authserver.Options.Values (docs/guide/providers.md).
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/examples/login/provider"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/authserver"
	"github.com/go-psi/psi/middleware"
)

// byLogin names a user of GitHub. At other providers, users may choose what is in this claim.
func byLogin(claims map[string]any) string {
	name, _ := claims["login"].(string)
	return name
}

// byEmail names a user of an OpenID provider.
func byEmail(claims map[string]any) string {
	if claims["email_verified"] != true {
		return ""
	}
	name, _ := claims["email"].(string)
	return name
}

// only returns a function that admits the named users. It is asked at each login, and again every
// few minutes.
func only(by func(claims map[string]any) string, names []string) func(context.Context, map[string]any) (*mcp.Principal, error) {
	return func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
		name := by(claims)
		if name == "" || !slices.Contains(names, name) {
			return nil, fmt.Errorf("%q is not on the list", name)
		}
		subject, _ := claims["sub"].(string) // which never changes, as names do
		return &mcp.Principal{Subject: subject, Claims: map[string]any{"name": name}}, nil
	}
}

func newServer(resource string, opts *authserver.Options) (http.Handler, error) {
	front, err := authserver.New(resource, opts)
	if err != nil {
		return nil, err
	}
	public, err := url.Parse(resource)
	if err != nil {
		return nil, err
	}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	whoami := func(ctx context.Context, _ struct{}) (string, error) {
		name, _ := mcp.PrincipalFromContext(ctx).Claims["name"].(string)
		return name, nil
	}
	write := func(context.Context, struct{}) (string, error) { return "written", nil }
	mux.Tool("whoami", mcp.ToolFunc(whoami, &mcp.Tool{Description: "Return the name of the user."}))
	mux.With(middleware.RequireScopes("notes:write")).Tool("write", mcp.ToolFunc(write, &mcp.Tool{Description: "Write a note."}))

	protect := auth.Require(front.Verifier(), &auth.Options{Metadata: front.Metadata()})
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{
		Options:    &mcphttp.Options{AllowedHosts: []string{public.Hostname()}}, // which the proxy forwards
		Middleware: []func(http.Handler) http.Handler{protect},
	})
	router.Handle("/*", front)
	return router, nil
}

func main() {
	names := strings.Fields(cmp.Or(os.Getenv("ALLOW"), "ada@example.com"))
	opts := &authserver.Options{Scopes: []string{"notes:read", "notes:write"}, Identify: only(byEmail, names)}
	if key := os.Getenv("KEY"); key != "" {
		opts.Keys = [][]byte{[]byte(key)}
	}
	issuer, id, secret := os.Getenv("ISSUER"), os.Getenv("CLIENT_ID"), os.Getenv("CLIENT_SECRET")
	switch {
	case issuer != "":
		opts.Provider = authserver.OIDC(issuer, id, secret)
	case id != "":
		opts.Provider, opts.Identify = authserver.GitHub(id, secret), only(byLogin, names)
	default:
		const here = "127.0.0.1:8081"
		opts.Provider = authserver.OIDC("http://"+here, provider.ClientID, provider.ClientSecret)
		go serve(here, provider.New("http://"+here))
	}
	h, err := newServer(cmp.Or(os.Getenv("RESOURCE"), "http://127.0.0.1:8080/mcp"), opts)
	if err != nil {
		log.Fatal(err)
	}
	serve("127.0.0.1:8080", h)
}

func serve(addr string, h http.Handler) {
	server := &http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

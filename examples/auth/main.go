// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command auth is an MCP server for users who have logged in. Users read only their own
// notes. Writing a note requires a scope, which a client requests from its user when it is
// needed.
//
//	go run ./examples/auth
//
// The authorization server in package authserver is for trying out only, and so is its
// user: the name is ada and the password is test. A browser opens for each of the first two
// commands below, the second time because only reading was allowed before:
//
//	go run ./mcp/cmd/psi call -login http://127.0.0.1:8080/mcp notes
//	go run ./mcp/cmd/psi call -login http://127.0.0.1:8080/mcp note text=milk
//	go run ./mcp/cmd/psi call -login http://127.0.0.1:8080/mcp notes
//
// For your own server, keep this file and use the URL of a real authorization server as the
// issuer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-psi/psi/examples/auth/authserver"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/middleware"
)

// The scopes. Every caller needs the first.
const (
	scopeRead  = "notes:read"
	scopeWrite = "notes:write"
)

// inspector is the origin of MCP Inspector, a page that may also use the server.
const inspector = "http://localhost:6274"

// newServer returns a router that serves an MCP server at its URL, the resource, for
// callers with a token for it from the issuer.
func newServer(resource, issuer string, logger *slog.Logger) (*mcphttp.Router, error) {
	metadata := &auth.Metadata{
		Resource:             resource,
		AuthorizationServers: []string{issuer},
		ScopesSupported:      []string{scopeRead},
		ResourceName:         "Notes",
	}
	path, err := auth.MetadataPath(resource)
	if err != nil {
		return nil, err
	}
	tokens, err := auth.NewJWT(issuer, resource, nil)
	if err != nil {
		return nil, err
	}
	router := mcphttp.NewRouter(newMux(logger), &mcphttp.RouterOptions{
		Options: &mcphttp.Options{Logger: logger},
		Middleware: []func(http.Handler) http.Handler{
			mcphttp.CORS(inspector),
			auth.Require(tokens, &auth.Options{Metadata: metadata, Scopes: []string{scopeRead}, Logger: logger}),
		},
	})
	router.Handle(path, auth.MetadataHandler(metadata))
	return router, nil
}

func newMux(logger *slog.Logger) *mcp.Mux {
	mux := mcp.NewMux("notes", "v1.0.0", &mcp.MuxOptions{Logger: logger})
	mux.Use(
		middleware.RequestID(nil),
		middleware.Logger(logger),
		middleware.Recover(logger),
		middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(60, time.Minute, nil)),
	)
	n := &notebooks{byUser: map[string][]string{}}
	mux.Tool("notes", mcp.ToolFunc(n.list, &mcp.Tool{Description: "List your notes."}))
	mux.With(middleware.RequireScopes(scopeWrite)).
		Tool("note", mcp.ToolFunc(n.add, &mcp.Tool{Description: "Write a note."}))
	return mux
}

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve at this `address`, of this machine")
	loginAddr := flag.String("login", "127.0.0.1:8081", "serve the authorization server at this `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *addr, *loginAddr)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run serves both servers until ctx is done.
func run(ctx context.Context, addr, loginAddr string) error {
	here, at, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	loginHere, issuer, err := listen(ctx, loginAddr)
	if err != nil {
		return errors.Join(err, here.Close())
	}
	notes, err := newServer(at+"/mcp", issuer, slog.Default())
	if err != nil {
		return errors.Join(err, here.Close(), loginHere.Close())
	}
	server := &http.Server{Handler: notes, ReadHeaderTimeout: 10 * time.Second}
	login := &http.Server{Handler: authserver.New(issuer, scopeRead, scopeWrite), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(here) }()
	go func() { ended <- login.Serve(loginHere) }()
	fmt.Println(at + "/mcp")
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, notes.Shutdown(ctx), server.Shutdown(ctx), login.Shutdown(ctx))
}

// listen returns a listener and its URL. It accepts only loopback addresses, because
// passwords and tokens are sent in the clear.
func listen(ctx context.Context, addr string) (here net.Listener, url string, err error) {
	here, err = new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, "", err
	}
	if tcp, ok := here.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, "", errors.Join(fmt.Errorf("%s is not an address of this machine alone, such as 127.0.0.1:8080", addr), here.Close())
	}
	return here, "http://" + here.Addr().String(), nil
}

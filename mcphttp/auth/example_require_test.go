// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/middleware"
)

// A server for tokens of an authorization server. Every valid token may read. Writing
// requires a scope that clients can request from their user when they need it.
func ExampleRequire() {
	const issuer, resource = "https://login.example.com", "https://mcp.example.com/mcp"

	mux := mcp.NewMux("files", "v1.0.0", nil)
	mux.Tool("read", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return "a file of " + mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil))
	writeFile := func(context.Context, struct{}) (string, error) { return "written", nil }
	login := &authtest.Issuer{URL: issuer, Audience: resource} // stands in for the authorization server
	opts := &auth.JWTOptions{Keys: login.JWKS()}               // nil in a program

	mux.With(middleware.RequireScopes("files:write")).Tool("write", mcp.ToolFunc(writeFile, nil))

	metadata := &auth.Metadata{
		Resource: resource, AuthorizationServers: []string{issuer}, ScopesSupported: []string{"files:read"},
	}
	path, err := auth.MetadataPath(resource)
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := auth.NewJWT(issuer, resource, opts) // with nil options, the keys are fetched from the issuer
	if err != nil {
		log.Fatal(err)
	}
	protect := auth.Require(tokens, &auth.Options{Metadata: metadata, Scopes: []string{"files:read"}})
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{Middleware: []func(http.Handler) http.Handler{protect}})
	router.Handle(path, auth.MetadataHandler(metadata))

	token := login.Token(authtest.Claims{"sub": "alice", "scope": "files:read"})
	for _, call := range []struct{ tool, token string }{{"read", ""}, {"read", token}, {"write", token}} {
		r := modern(call.tool)
		if call.token != "" {
			r.Header.Set("Authorization", "Bearer "+call.token)
		}
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		fmt.Println(w.Code)
		if challenge := w.Header().Get("WWW-Authenticate"); challenge != "" {
			fmt.Println(strings.ReplaceAll(challenge, ", ", ",\n  "))
		}
	}
	// Output:
	// 401
	// Bearer scope="files:read",
	//   resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
	// 200
	// 403
	// Bearer error="insufficient_scope",
	//   scope="files:read files:write",
	//   resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
}

func ExampleMetadataHandler() {
	m := &auth.Metadata{Resource: "https://mcp.example.com/mcp", AuthorizationServers: []string{"https://login.example.com"}}
	path, err := auth.MetadataPath(m.Resource)
	if err != nil {
		log.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.Handle(path, auth.MetadataHandler(m))

	w := httptest.NewRecorder()
	routes.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://mcp.example.com"+path, nil))
	fmt.Println(path)
	fmt.Println(w.Body)
	// Output:
	// /.well-known/oauth-protected-resource/mcp
	// {"resource":"https://mcp.example.com/mcp","authorization_servers":["https://login.example.com"],"bearer_methods_supported":["header"]}
}

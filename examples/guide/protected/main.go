// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command protected is the server of the guide for callers with a token.
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/middleware"
)

const (
	issuer   = "https://login.example.com"     // your authorization server
	resource = "https://notes.example.com/mcp" // the public URL of this server
)

func read(ctx context.Context, _ struct{}) (string, error) {
	return "the notes of " + mcp.PrincipalFromContext(ctx).Subject, nil
}

func write(ctx context.Context, _ struct{}) (string, error) { return "written", nil }

func newServer(issuer, resource string) http.Handler {
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Tool("read", mcp.ToolFunc(read, nil))
	mux.With(middleware.RequireScopes("notes:read", "notes:write")).Tool("write", mcp.ToolFunc(write, nil))

	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{
		Options: &mcphttp.Options{AllowedHosts: []string{"notes.example.com"}},
		Middleware: []func(http.Handler) http.Handler{
			auth.Require(auth.NewJWT(issuer, resource, nil), &auth.Options{Resource: resource, Scopes: []string{"notes:read"}}),
		},
	})
	router.Handle(auth.MetadataPath(resource), auth.MetadataHandler(&auth.Metadata{
		Resource: resource, AuthorizationServers: []string{issuer}, ScopesSupported: []string{"notes:read", "notes:write"},
	}))
	return router
}

func main() {
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: newServer(issuer, resource), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe()) // behind a proxy that has the certificate
}

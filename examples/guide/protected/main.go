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

func newServer(issuer, resource string) (http.Handler, error) {
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Tool("read", mcp.ToolFunc(read, nil))
	mux.With(middleware.RequireScopes("notes:read", "notes:write")).Tool("write", mcp.ToolFunc(write, nil))

	metadata := &auth.Metadata{
		Resource: resource, AuthorizationServers: []string{issuer}, ScopesSupported: []string{"notes:read", "notes:write"},
	}
	path, err := auth.MetadataPath(resource)
	if err != nil {
		return nil, err
	}
	tokens, err := auth.NewJWT(issuer, resource, nil)
	if err != nil {
		return nil, err
	}
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{
		Options: &mcphttp.Options{AllowedHosts: []string{"notes.example.com"}},
		Middleware: []func(http.Handler) http.Handler{
			auth.Require(tokens, &auth.Options{Metadata: metadata, Scopes: []string{"notes:read"}}),
		},
	})
	router.Handle(path, auth.MetadataHandler(metadata))
	return router, nil
}

func main() {
	h, err := newServer(issuer, resource)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: h, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe()) // behind a proxy that has the certificate
}

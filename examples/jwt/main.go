// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command jwt is a thermostat for callers with an access token (JWT) of an authorization
// server. Setting it requires a scope, which clients request from their user when needed.
//
//	RESOURCE=http://127.0.0.1:8080/mcp ISSUER=https://login.example.com go run ./examples/jwt
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/middleware"
)

type target struct {
	Degrees int    `json:"degrees" jsonschema:"minimum=5,maximum=30,description=in Celsius"`
	Mode    string `json:"mode,omitempty" jsonschema:"enum=eco,enum=comfort,default=eco"`
}

func newServer(resource, issuer string) (http.Handler, error) {
	var now atomic.Pointer[target]
	now.Store(&target{20, "eco"})
	read := func(context.Context, struct{}) (*target, error) { return now.Load(), nil }
	whoami := func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.PrincipalFromContext(ctx).Subject, nil
	}
	set := func(_ context.Context, in target) (*target, error) { now.Store(&in); return &in, nil }
	mux := mcp.NewMux("thermostat", "v1.0.0", nil)
	mux.Tool("read", mcp.ToolFunc(read, &mcp.Tool{Description: "Read the thermostat."}))
	mux.Tool("whoami", mcp.ToolFunc(whoami, &mcp.Tool{Description: "Return the name of the user."}))
	mux.With(middleware.RequireScopes("heat:write")).Tool("set", mcp.ToolFunc(set, &mcp.Tool{Description: "Set the thermostat."}))

	metadata := &auth.Metadata{Resource: resource, AuthorizationServers: []string{issuer}}
	path, err := auth.MetadataPath(resource)
	if err != nil {
		return nil, err
	}
	tokens, err := auth.NewJWT(issuer, resource, nil)
	if err != nil {
		return nil, err
	}
	protect := auth.Require(tokens, &auth.Options{Metadata: metadata})
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{Middleware: []func(http.Handler) http.Handler{protect}})
	router.Handle(path, auth.MetadataHandler(metadata))
	return router, nil
}

func main() {
	h, err := newServer(os.Getenv("RESOURCE"), os.Getenv("ISSUER"))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: h, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

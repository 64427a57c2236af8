// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command calculator is the program of the README: an MCP server with one tool, at
// http://127.0.0.1:8080/mcp.
package main

import (
	"context"
	"log"
	"log/slog"
	"net/http"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

type AddIn struct {
	A int `json:"a" jsonschema:"description=first addend"`
	B int `json:"b" jsonschema:"description=second addend"`
}
type AddOut struct {
	Sum int `json:"sum"`
}

func add(ctx context.Context, in AddIn) (AddOut, error) { return AddOut{in.A + in.B}, nil }

func routes() http.Handler {
	mux := mcp.NewMux("calculator", "v1.0.0", nil)
	mux.Use(middleware.Logger(slog.Default()))
	mux.Tool("add", mcp.ToolFunc(add, &mcp.Tool{Description: "Add two integers."}))

	r := http.NewServeMux()                        // or chi, or whatever routes your HTTP
	r.Handle("/mcp", mcphttp.NewHandler(mux, nil)) // every revision, both eras, one endpoint
	return r                                       // or, on stdio: mcpstdio.Serve(ctx, mux, nil)
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:8080", routes())) }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// Middleware hides a tool. The caller gets the same error as for a tool that does not
// exist.
func ExampleNewUnknownNameError() {
	mux := mcp.NewMux("admin", "v1.0.0", nil)
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool && req.Name() == "reset" && !req.Principal.HasScope("admin") {
				return nil, mcp.NewUnknownNameError("tool", req.Name())
			}
			return next.ServeMCP(ctx, req)
		})
	})
	mux.Tool("reset", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil))

	_, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "reset"}))
	fmt.Println(err)
	// Output: unknown tool "reset" (code -32602)
}

// A custom handler reports that a resource does not exist.
func ExampleNewResourceNotFoundError() {
	read := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return nil, mcp.NewResourceNotFoundError(req.Name())
	})
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Resource("notes://{id}", read)

	_, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "notes://8"}))
	fmt.Println(err)
	// Output: resource "notes://8" not found (code -32602)
}

// A Handler other than a Mux rejects methods that it does not serve.
func ExampleNewMethodNotFoundError() {
	server := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return nil, mcp.NewMethodNotFoundError(req.Method)
	})
	_, err := server.ServeMCP(context.Background(), mcptest.NewRequest("weather/forecast", nil))
	fmt.Println(err)
	// Output: method "weather/forecast" not found (code -32601)
}

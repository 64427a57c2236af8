// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// Middleware from NewMiddleware can wrap a single tool, which is still listed.
func ExampleNewMiddleware() {
	announced := mcp.NewMiddleware(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			fmt.Println("calling", req.Name())
			return next.ServeMCP(ctx, req)
		})
	})
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Tool("hello", announced(mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)))

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for tool, err := range conn.Tools(ctx, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		text, err := mcp.Call[string](ctx, conn, tool.Name, nil)
		fmt.Println(text, err)
	}
	// Output:
	// calling hello
	// hello <nil>
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"log/slog"
	"os"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
)

func ExampleLogger() {
	// Times differ from run to run, so the example removes them.
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" {
				return slog.Attr{}
			}
			return a
		},
	}))
	mux := mcp.NewMux("calculator", "v1.0.0", nil)
	mux.Use(middleware.Logger(logger))
	mux.Tool("ping", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "pong", nil }, nil))

	for _, name := range []string{"ping", "pong"} {
		req, err := mcp.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: name})
		if err != nil {
			panic(err)
		}
		_, _ = mux.ServeMCP(context.Background(), req)
	}
	// Output:
	// level=INFO msg="mcp: request" method=tools/call name=ping outcome=ok
	// level=INFO msg="mcp: request" method=tools/call name=pong outcome=error code=-32602
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command mcpgo is the smallest server over stdio with mark3labs/mcp-go.
package main

import (
	"context"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/go-psi/psi/internal/tools/compare/work"
)

func main() {
	s := server.NewMCPServer("mcp-go", "v1", server.WithInputSchemaValidation(), server.WithOutputSchemaValidation())
	s.AddTool(mcp.NewTool("add", mcp.WithInputSchema[work.AddIn](), mcp.WithOutputSchema[work.AddOut]()),
		mcp.NewStructuredToolHandler(func(ctx context.Context, _ mcp.CallToolRequest, in work.AddIn) (work.AddOut, error) {
			return work.Add(ctx, in)
		}))
	if err := server.ServeStdio(s); err != nil {
		log.Fatal(err)
	}
}

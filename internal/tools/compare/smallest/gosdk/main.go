// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command gosdk is the smallest server over stdio with modelcontextprotocol/go-sdk.
package main

import (
	"context"
	"log"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/go-psi/psi/internal/tools/compare/work"
)

func main() {
	s := sdk.NewServer(&sdk.Implementation{Name: "go-sdk", Version: "v1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "add"}, func(ctx context.Context, _ *sdk.CallToolRequest, in work.AddIn) (*sdk.CallToolResult, work.AddOut, error) {
		out, err := work.Add(ctx, in)
		return nil, out, err
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command hello is the first program of the README: an MCP server with one tool, over
// standard input and output.
package main

import (
	"context"
	"log"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

type person struct {
	Name string `json:"name" jsonschema:"description=The person to greet"`
}

func greet(_ context.Context, p person) (string, error) { return "Hello, " + p.Name + "!", nil }

func newMux() *mcp.Mux {
	mux := mcp.NewMux("hello", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, &mcp.Tool{Description: "Greet a person."}))
	return mux
}

func main() {
	if err := mcpstdio.Serve(context.Background(), newMux(), nil); err != nil {
		log.Fatal(err)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command hello is the smallest server: a tool that a host such as Claude starts and calls.
package main

import (
	"context"
	"log"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

type person struct {
	Name string `json:"name"`
}

func greet(_ context.Context, p person) (string, error) { return "Hello, " + p.Name + "!", nil }

func main() {
	mux := mcp.NewMux("hello", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, &mcp.Tool{Description: "Greet a person."}))
	if err := mcpstdio.Serve(context.Background(), mux, nil); err != nil {
		log.Fatal(err)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// The client talks to a server like hello.
func Example() {
	mux := mcp.NewMux("hello", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}, &mcp.Tool{Description: "Greet a person."}))
	server := httptest.NewServer(mcphttp.NewHandler(mux, nil))
	defer server.Close()

	if err := run(context.Background(), server.URL); err != nil {
		fmt.Println(err)
	}
	// Output: Hello, Ada!
}

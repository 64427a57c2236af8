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

// The client talks to a server like the calculator's.
func Example() {
	type operands struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type sum struct {
		Sum int `json:"sum"`
	}
	mux := mcp.NewMux("calculator", "v1.0.0", nil)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in operands) (sum, error) {
		return sum{in.A + in.B}, nil
	}, &mcp.Tool{Description: "Add two integers."}))
	server := httptest.NewServer(mcphttp.NewHandler(mux, nil))
	defer server.Close()

	if err := run(context.Background(), server.URL); err != nil {
		fmt.Println(err)
	}
	// Output:
	// add: Add two integers.
	// 2 + 3 = 5
}

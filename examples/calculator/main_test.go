// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

func TestAdd(t *testing.T) {
	mux := mcp.NewMux("calculator", "v1.0.0", nil)
	mux.Tool("add", mcp.ToolFunc(add, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: []byte(`{"a":2,"b":3}`)})
		if err != nil || string(res.StructuredContent) != `{"sum":5}` {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

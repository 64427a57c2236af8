// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A mounted server whose cursor is too long to come back in a request does not hide the
// servers that are listed after it.
func TestSecondLookLongCursor(t *testing.T) {
	long := strings.Repeat("c", 8<<20)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Mount("a_", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != mcp.MethodListTools {
			return nil, mcp.NewMethodNotFoundError(req.Method)
		}
		return &mcp.ListToolsResult{Page: mcp.Page{NextCursor: &long}, Tools: []*mcp.Tool{{Name: "t", InputSchema: []byte(`{"type":"object"}`)}}}, nil
	}))
	mux.Mount("b_", hello())
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		var names []string
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != "a_t b_hello" {
			t.Errorf("got %s", got)
		}
	})
}

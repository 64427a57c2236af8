// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package bounds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/toolsearch"
	"github.com/go-psi/psi/middleware"
)

// searchTools ranks tools that are different in each search.
func searchTools(t *testing.T, searches, tools int, describe func(i int) string) {
	t.Helper()
	rank := toolsearch.BM25()
	for range searches {
		list := make([]*mcp.Tool, tools)
		for i := range list {
			distinct++
			list[i] = &mcp.Tool{Name: fmt.Sprintf("tool%d", distinct), Description: describe(distinct)}
		}
		if _, err := rank(t.Context(), "some words", list); err != nil {
			t.Fatal(err)
		}
	}
	keep(t, rank)
}

func manyWords(i int) string {
	var b strings.Builder
	for word := range 1500 {
		fmt.Fprintf(&b, "%c%c%c%c ", 'a'+word%26, 'a'+word/26%26, 'a'+word/676, 'a'+i%26)
	}
	return b.String()
}

// misuse calls a reshaped tool, whose schema differs for each of many callers, with invalid
// arguments.
func misuse(t *testing.T) {
	calls := 0
	server := hostile(func(int) *mcp.ListToolsResult {
		calls++
		var schema strings.Builder
		schema.WriteString(`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}`)
		for i := range 200 {
			fmt.Fprintf(&schema, `,"p%d_%d":{"type":"string","pattern":"^[a-z]{1,20}$"}`, calls, i)
		}
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "some", InputSchema: json.RawMessage(schema.String() + "}}")}}}
	})
	mux := newMux()
	mux.Use(middleware.Reshape(map[string]mcp.Shape{"some": {Args: map[string]mcp.Arg{"a": {Name: "b"}}}}),
		func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodCallTool {
					return &mcp.CallToolResult{IsError: true}, nil
				}
				return server.ServeMCP(ctx, req)
			})
		})
	for i := range 60 {
		req := mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "some", Arguments: json.RawMessage(`{"b":1}`)})
		req.Principal = &mcp.Principal{Subject: fmt.Sprint("caller ", i)}
		if _, err := mux.ServeMCP(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 60 {
		t.Errorf("the server was asked for its list %d times", calls)
	}
	keep(t, mux)
}

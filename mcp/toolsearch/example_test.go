// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package toolsearch_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/toolsearch"
)

// A model finds a tool that is not listed, and calls it.
func ExampleNew() {
	mux := mcp.NewMux("office", "v1.0.0", nil)
	mux.Use(toolsearch.New(nil))
	mux.Tool("create_invoice", mcp.ToolFunc(func(_ context.Context, in struct {
		Customer string `json:"customer"`
	}) (string, error) {
		return "Invoice 7 for " + in.Customer, nil
	}, &mcp.Tool{Description: "Write an invoice for a customer."}))

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	found, err := mcp.Call[struct {
		Tools []*mcp.Tool `json:"tools"`
	}](ctx, conn, "search_tools", map[string]any{"query": "bill the customers"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range found.Tools {
		fmt.Println(mcp.Call[string](ctx, conn, "call_tool", map[string]any{
			"name": tool.Name, "arguments": map[string]any{"customer": "Ada"},
		}))
	}
	// Output: Invoice 7 for Ada <nil>
}

// A Ranker can change what another one finds: here, tools that are marked as old come last.
func ExampleBM25() {
	words := toolsearch.BM25()
	isOld := func(t *mcp.Tool) bool { return t.Meta.Get("example.com/old", new(bool)) }
	rank := func(ctx context.Context, query string, tools []*mcp.Tool) ([]*mcp.Tool, error) {
		ranked, err := words(ctx, query, tools)
		current := slices.DeleteFunc(slices.Clone(ranked), isOld)
		old := slices.DeleteFunc(ranked, func(t *mcp.Tool) bool { return !isOld(t) })
		return append(current, old...), err
	}
	mux := mcp.NewMux("office", "v1.0.0", nil)
	mux.Use(toolsearch.New(&toolsearch.Options{Rank: rank}))

	retired := &mcp.Tool{Name: "create_invoice"}
	retired.Meta.Set("example.com/old", true)
	ranked, err := rank(context.Background(), "create invoice", []*mcp.Tool{retired, {Name: "write_invoice"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range ranked {
		fmt.Println(tool.Name)
	}
	// Output:
	// write_invoice
	// create_invoice
}

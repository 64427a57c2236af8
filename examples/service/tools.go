// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
	"github.com/go-psi/psi/middleware/prommcp"
)

// newMux returns the MCP server. Requests pass through the middleware of Use, outermost
// first, so requests rejected by RateLimit are counted and logged, too.
func newMux(stock *inventory, metrics prometheus.Registerer, opts *mcp.MuxOptions) *mcp.Mux {
	mux := mcp.NewMux("stock", "v1.0.0", opts)
	mux.Use(
		middleware.RequestID(nil),
		middleware.Logger(opts.Logger),
		middleware.Metrics(prommcp.Server(metrics), nil),
		middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(120, time.Minute, nil)),
		middleware.Timeout(30*time.Second),
	)
	t := tools{stock}
	mux.Tool("find_items", mcp.ToolFunc(t.find, &mcp.Tool{
		Description: "Find items by a part of their name, and how many there are.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)},
	}))
	mux.With(middleware.RequireScopes(scopeRead, scopeWrite)).Tool("set_count", mcp.ToolFunc(t.set, &mcp.Tool{
		Description: "Set how many there are of an item.",
	}))
	return mux
}

type tools struct{ stock *inventory }

type findIn struct {
	Name string `json:"name,omitzero" jsonschema_description:"A part of the name; empty for all items"`
}

type findOut struct {
	Items []item `json:"items"`
}

func (t tools) find(_ context.Context, in findIn) (findOut, error) {
	return findOut{t.stock.find(in.Name)}, nil
}

type setIn struct {
	Name  string `json:"name" jsonschema:"minLength=1,maxLength=100"`
	Count int    `json:"count" jsonschema:"minimum=0"`
}

func (t tools) set(_ context.Context, in setIn) (item, error) {
	return item(in), t.stock.set(in.Name, in.Count)
}

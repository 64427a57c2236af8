// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// BenchmarkInProcess is a typed call from a client to a server in the same process.
func BenchmarkInProcess(b *testing.B) {
	type in struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type out struct {
		Sum int `json:"sum"`
	}
	mux := mcp.NewMux("calculator", "v1", nil)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, i in) (out, error) { return out{i.A + i.B}, nil }, nil))
	c, err := mcp.NewClient("c", "v1", nil).Connect(b.Context(), mcp.InProcess(mux))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		if got, err := mcp.Call[out](b.Context(), c, "add", in{1, 2}); err != nil || got.Sum != 3 {
			b.Fatal(got, err)
		}
	}
}

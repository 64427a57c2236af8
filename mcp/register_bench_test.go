// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// BenchmarkRegister registers typed tools: schemas inferred, compiled and checked for
// what model providers refuse. A server does it before it answers anybody.
func BenchmarkRegister(b *testing.B) {
	type in struct{ A, B int }
	add := func(_ context.Context, p in) (int, error) { return p.A + p.B, nil }
	mux := mcp.NewMux("test", "v1", nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		mux.Tool(fmt.Sprint("tool", i), mcp.ToolFunc(add, nil))
	}
}

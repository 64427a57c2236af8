// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// TestRun runs the client with a server in this process that has the tool of the counter.
func TestRun(t *testing.T) {
	type input struct {
		Text string `json:"text"`
	}
	mux := mcp.NewMux("counter", "v1.0.0", nil)
	mux.Tool("count", mcp.ToolFunc(func(_ context.Context, in input) (map[string]int, error) {
		return map[string]int{"count": len(strings.Fields(in.Text))}, nil
	}, &mcp.Tool{Description: "Count the words of a text."}))

	var out strings.Builder
	err := run(t.Context(), mcp.InProcess(mux), &out)
	if want := "count: Count the words of a text.\nwords: 6\n"; err != nil || out.String() != want {
		t.Errorf("printed %q, %v; want %q", &out, err, want)
	}
}

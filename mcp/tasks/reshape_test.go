// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/middleware"
)

// A task continues after a question even if middleware around the mux renames its tool.
func TestRenamedTool(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.mux.Use(middleware.Reshape(map[string]mcp.Shape{"ask": {Name: "question"}}))
		r.tool("ask", func(ctx context.Context) (string, error) {
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return c.Codec, err
		})
		h := start(t, r.connect(t), "question")
		answer(t, h, until(t, h, tasks.InputRequired), av1)
		if got := text(t, until(t, h, tasks.Completed)); got != "av1" {
			t.Errorf("the result is %q", got)
		}
	})
}

// A result that is changed after the call must not come from a task, whose result clients read
// with another request. A tool that runs in the background can be reshaped itself.
func TestReshapedResult(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shape := mcp.Shape{Result: func(context.Context, *mcp.CallToolResult) (*mcp.CallToolResult, error) {
			return mcp.TextResult("short"), nil
		}}
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.mux.Use(middleware.Reshape(map[string]mcp.Shape{"outside": shape}))
		long := func(context.Context) (string, error) { return "long", nil }
		r.tool("outside", long)
		r.background.Tool("inside", mcp.Reshape(mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) { return long(ctx) }, nil), shape))
		c := r.connect(t)
		h, res, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "outside"})
		if h != nil || err != nil || res.Content[0].(*mcp.TextContent).Text != "short" {
			t.Errorf("got %v, %v, %v", h, res, err)
		}
		if got := text(t, until(t, start(t, c, "inside"), tasks.Completed)); got != "short" {
			t.Errorf("got %q", got)
		}
	})
}

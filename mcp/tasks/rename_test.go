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
		r.mux.Use(middleware.Rename(map[string]string{"ask": "question"}))
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

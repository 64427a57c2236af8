// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"sync"
)

// A lateTool is a tool whose arguments have a schema that is compiled when it is first called:
// most tools of a catalog of thousands are never called, and a compiled schema takes 20 times
// the memory of its text.
type lateTool struct {
	tool Tool
	made func() *lateFunc
}

type lateFunc = toolFunc[map[string]json.RawMessage, *CallToolResult]

// LateTool is like [ToolFunc], but compiles the schema of the arguments when the tool is first
// called. The schemas of t must be known to be valid and to pass the linter, which are not
// checked again; fn validates its own results.
func (internals) LateTool(fn func(ctx context.Context, args map[string]json.RawMessage) (*CallToolResult, error), t *Tool) Handler {
	return &lateTool{*t, sync.OnceValue(func() *lateFunc {
		bare := *t
		bare.OutputSchema = nil
		f, _ := ToolFunc(fn, &bare).(*lateFunc)
		return f
	})}
}

// Describe implements [Describer].
func (l *lateTool) Describe() Description { return &l.tool }

// compiled marks a handler whose schemas are known to be valid.
func (*lateTool) compiled() {}

// linted marks a handler whose schemas are known to pass the linter.
func (*lateTool) linted() {}

// ServeMCP implements [Handler].
func (l *lateTool) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	return l.made().ServeMCP(ctx, req)
}

func (l *lateTool) mend(ctx context.Context, args json.RawMessage) (json.RawMessage, []string) {
	return l.made().mend(ctx, args)
}

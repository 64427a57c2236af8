// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "sync/atomic"

// wireTool keeps how a registered tool looks on the wire of each revision, so
// that a list is encoded once and not per request. It belongs to exactly one
// Tool: a copy of that is encoded anew.
type wireTool struct {
	of      *Tool
	encoded [newestModern + 1]atomic.Pointer[[]byte]
}

func newWireTool(t *Tool) *wireTool { return &wireTool{of: t} }

func appendTool(dst []byte, t *Tool, rev revision) ([]byte, error) {
	if t.wire != nil && t.wire.of == t {
		if kept := t.wire.encoded[rev].Load(); kept != nil {
			return append(dst, *kept...), nil
		}
	}
	raw, err := marshal(toolFor(t, rev))
	if err != nil {
		return nil, err
	}
	if t.wire != nil && t.wire.of == t {
		t.wire.encoded[rev].Store(&raw)
	}
	return append(dst, raw...), nil
}

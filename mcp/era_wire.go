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
	if kept := keptTool(t, rev); kept != nil {
		return append(dst, *kept...), nil
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

// keptTool returns the encoding of a tool that was made before, or nil.
func keptTool(t *Tool, rev revision) *[]byte {
	if t.wire == nil || t.wire.of != t {
		return nil
	}
	return t.wire.encoded[rev].Load()
}

// sizeOfKept returns how many bytes the tools of a list will take, as far as is known.
func sizeOfKept(tools []*Tool, rev revision) (size int) {
	for _, t := range tools {
		if kept := keptTool(t, rev); kept != nil {
			size += len(*kept) + len(",")
		}
	}
	return size
}

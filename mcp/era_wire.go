// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "sync/atomic"

// A toolForm is how a revision of the protocol has tools. Its number is the place where
// the encoding of a registered tool is kept; 0 is the newest revision.
type toolForm struct {
	number int
	change func(*Tool) *Tool // nil if tools are encoded as they are
}

const maxToolForms = 8

// wireTool keeps the encodings of a registered tool, so that a list is encoded once and
// not for each request. It belongs to exactly one Tool: a copy of that is encoded anew.
type wireTool struct {
	of      *Tool
	encoded [maxToolForms]atomic.Pointer[[]byte]
}

func newWireTool(t *Tool) *wireTool { return &wireTool{of: t} }

func appendTool(dst []byte, t *Tool, form toolForm) ([]byte, error) {
	if kept := keptTool(t, form); kept != nil {
		return append(dst, *kept...), nil
	}
	changed := t
	if form.change != nil {
		changed = form.change(t)
	}
	raw, err := marshal(changed)
	if err != nil {
		return nil, err
	}
	if t.wire != nil && t.wire.of == t {
		t.wire.encoded[form.number].Store(&raw)
	}
	return append(dst, raw...), nil
}

// keptTool returns the encoding of a tool that was made before, or nil.
func keptTool(t *Tool, form toolForm) *[]byte {
	if t.wire == nil || t.wire.of != t {
		return nil
	}
	return t.wire.encoded[form.number].Load()
}

// sizeOfKept returns the bytes that the tools of a list will take, as far as is known.
func sizeOfKept(tools []*Tool, form toolForm) (size int) {
	for _, t := range tools {
		if kept := keptTool(t, form); kept != nil {
			size += len(*kept) + len(",")
		}
	}
	return size
}

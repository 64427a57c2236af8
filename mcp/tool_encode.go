// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/jsonscan"
)

// encode encodes a call of the usual shape: a name and arguments. For anything else
// it returns nil, and the params are encoded with all care and every error.
func (p *CallToolParams) encode() json.RawMessage {
	usual := p != nil && p.InputResponses == nil && p.RequestState == nil && p.Meta == nil && p.Extra == nil
	if !usual || !utf8.ValidString(p.Name) || jsonscan.Valid(p.Arguments, 0) != nil {
		return nil
	}
	raw := make([]byte, 0, len(`{"name":"","arguments":}`)+len(p.Name)+len(p.Arguments))
	raw = append(raw, `{"name":`...)
	raw = jsonscan.AppendString(raw, p.Name)
	raw = append(raw, `,"arguments":`...)
	raw = append(raw, p.Arguments...)
	return append(raw, '}')
}

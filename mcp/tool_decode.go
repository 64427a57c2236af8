// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"

	"github.com/go-psi/psi/internal/jsonscan"
)

// decodeToolResult decodes a result of the usual shape, which is known to be well
// formed, in one pass: text blocks without annotations, and members of the
// specification. For anything else it returns nil, and the result is decoded with all
// care and every error.
func decodeToolResult(raw json.RawMessage) *CallToolResult {
	s := jsonscan.Get(raw, 0)
	defer s.Release()
	r := new(structuredResult)
	s.Object()
	for s.Member() {
		ok := false
		switch string(s.Name()) {
		case "resultType":
			r.ResultType = ResultComplete
			ok = string(s.Value()) == `"`+ResultComplete+`"`
		case "content":
			ok = r.takeTexts(s)
		case "structuredContent":
			r.StructuredContent = s.Value()
			ok = true
		case "isError":
			value := s.Value()
			r.IsError = string(value) == "true"
			ok = r.IsError || string(value) == "false"
		case "_meta":
			ok = r.Meta.take(s)
		}
		if !ok {
			return nil
		}
	}
	if s.Err() != nil {
		return nil
	}
	return &r.CallToolResult
}

// takeTexts takes a list of text blocks, and reports false if it is something else.
func (r *structuredResult) takeTexts(s *jsonscan.Scanner) bool {
	if s.Kind() != '[' || !s.Array() {
		return false
	}
	r.Content = r.block[:0]
	for s.Element() {
		text := &r.text
		if len(r.Content) > 0 {
			text = new(TextContent)
		}
		if !text.take(s) {
			return false
		}
		r.Content = append(r.Content, text)
	}
	return s.Err() == nil
}

// take takes a block that has a text and nothing else.
func (t *TextContent) take(s *jsonscan.Scanner) bool {
	if s.Kind() != '{' || !s.Object() {
		return false
	}
	members := 0
	for s.Member() {
		switch string(s.Name()) {
		case "type":
			if string(s.Value()) != `"text"` {
				return false
			}
		case "text":
			if s.Kind() != '"' {
				return false
			}
			t.Text = string(jsonscan.Unquote(s.Value()))
		default:
			return false
		}
		members++
	}
	return members == 2 && s.Err() == nil
}

// take takes a _meta object, whose values stay where they are.
func (m *Meta) take(s *jsonscan.Scanner) bool {
	switch s.Kind() {
	case 'n':
		s.Skip()
		return true
	case '{':
	default:
		return false
	}
	*m = Meta{}
	s.Object()
	for s.Member() {
		if string(s.Name()) == MetaServerInfo { // what servers say each time needs no new key
			(*m)[MetaServerInfo] = s.Value()
		} else {
			(*m)[string(s.Name())] = s.Value()
		}
	}
	return s.Err() == nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"errors"

	"github.com/go-psi/psi/internal/jsonscan"
)

var errNilContent = errors.New("mcp: nil content")

func appendContents(dst []byte, list []Content) ([]byte, error) {
	dst = append(dst, '[')
	for i, c := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendContent(dst, c); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendContent(dst []byte, c Content) ([]byte, error) {
	switch c := c.(type) {
	case nil:
		return nil, errNilContent
	case *TextContent:
		if c.Annotations == nil && c.Meta == nil && len(c.Extra) == 0 {
			dst = append(dst, `{"type":"text","text":`...)
			dst = jsonscan.AppendString(dst, c.Text)
			return append(dst, '}'), nil
		}
	case *UnknownContent:
		if !isObject(c.Raw) {
			return nil, errors.New("mcp: unknown content is not a JSON object")
		}
		return appendRaw(dst, "unknown content", c.Raw)
	case *ToolUseContent:
		if c.Input == nil {
			filled := *c
			filled.Input = []byte("{}")
			return appendTyped(dst, &filled)
		}
	}
	return appendTyped(dst, c)
}

// appendTyped writes the block as its struct says, after its type. An unknown member
// cannot be a second type: that of a resource, say, to which a link is made.
func appendTyped(dst []byte, c Content) ([]byte, error) {
	body, err := marshal(c)
	if err != nil {
		return nil, err
	}
	if body[0] != '{' { // null, of a nil pointer
		return nil, errNilContent
	}
	dst = append(dst, `{"type":`...)
	dst = jsonscan.AppendString(dst, c.contentType())
	if _, typed := extraOf(c)["type"]; typed {
		return appendMembersBut(dst, body, []string{"type"}), nil
	}
	return appendMembers(dst, body), nil
}

// appendMembers continues an object that was begun in dst with the members of
// the encoded object body, and closes it.
func appendMembers(dst, body []byte) []byte {
	if len(body) > len("{}") {
		dst = append(dst, ',')
	}
	return append(dst, body[1:]...)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"fmt"
)

// This file has the methods of the types of content for encoding/json; see json_types.go.

// typed is a block of content as it goes over the wire.
type typed[T any] struct {
	Type  string `json:"type"`
	Block *T     `json:",embed"`
}

// unmarshalContent decodes a block whose type is known, which must be the type of data.
func unmarshalContent(data []byte, block Content) error {
	if kind, _ := contentTypeOf(data); kind != block.contentType() {
		return fmt.Errorf("mcp: the content is not of the type %q", block.contentType())
	}
	return unmarshal(data, block)
}

func (c *TextContent) plain() any {
	type plain TextContent
	return &typed[plain]{c.contentType(), (*plain)(c)}
}

// MarshalJSON implements json.Marshaler.
func (c TextContent) MarshalJSON() ([]byte, error) { return appendContent(nil, &c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *TextContent) UnmarshalJSON(data []byte) error { return unmarshalContent(data, c) }

func (c *ImageContent) plain() any {
	type plain ImageContent
	return &typed[plain]{c.contentType(), (*plain)(c)}
}

// MarshalJSON implements json.Marshaler.
func (c ImageContent) MarshalJSON() ([]byte, error) { return appendContent(nil, &c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *ImageContent) UnmarshalJSON(data []byte) error { return unmarshalContent(data, c) }

func (c *AudioContent) plain() any {
	type plain AudioContent
	return &typed[plain]{c.contentType(), (*plain)(c)}
}

// MarshalJSON implements json.Marshaler.
func (c AudioContent) MarshalJSON() ([]byte, error) { return appendContent(nil, &c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *AudioContent) UnmarshalJSON(data []byte) error { return unmarshalContent(data, c) }

func (c *ResourceLink) plain() any {
	type plain Resource
	return &typed[plain]{c.contentType(), (*plain)(&c.Resource)}
}

// MarshalJSON implements json.Marshaler.
func (c ResourceLink) MarshalJSON() ([]byte, error) { return appendContent(nil, &c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *ResourceLink) UnmarshalJSON(data []byte) error { return unmarshalContent(data, c) }

func (c *EmbeddedResource) plain() any {
	type plain EmbeddedResource
	return &typed[plain]{c.contentType(), (*plain)(c)}
}

// MarshalJSON implements json.Marshaler.
func (c EmbeddedResource) MarshalJSON() ([]byte, error) { return appendContent(nil, &c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *EmbeddedResource) UnmarshalJSON(data []byte) error { return unmarshalContent(data, c) }

func (c *ToolUseContent) plain() any {
	type plain ToolUseContent
	return &typed[plain]{c.contentType(), (*plain)(c)}
}

// MarshalJSON implements json.Marshaler.
func (c ToolUseContent) MarshalJSON() ([]byte, error) { return appendContent(nil, &c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *ToolUseContent) UnmarshalJSON(data []byte) error { return unmarshalContent(data, c) }

func (c *ToolResultContent) plain() any {
	type plain ToolResultContent
	return &typed[plain]{c.contentType(), (*plain)(c)}
}

// MarshalJSON implements json.Marshaler.
func (c ToolResultContent) MarshalJSON() ([]byte, error) { return appendContent(nil, &c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *ToolResultContent) UnmarshalJSON(data []byte) error { return unmarshalContent(data, c) }

// MarshalJSON implements json.Marshaler.
func (c UnknownContent) MarshalJSON() ([]byte, error) { return appendContent(nil, &c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *UnknownContent) UnmarshalJSON(data []byte) error {
	block, err := decodeContent(data)
	if err != nil {
		return err
	}
	unknown, ok := block.(*UnknownContent)
	if !ok {
		unknown = &UnknownContent{Type: block.contentType(), Raw: append(json.RawMessage(nil), data...)}
	}
	*c = *unknown
	return nil
}

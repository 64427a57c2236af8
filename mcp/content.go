// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
)

// Content is a content block: [*TextContent], [*ImageContent], [*AudioContent],
// [*ResourceLink], [*EmbeddedResource], [*ToolUseContent], [*ToolResultContent], or
// [*UnknownContent] for any other type.
type Content interface{ contentType() string }

// Annotations are hints for the client about a content block or a resource.
type Annotations struct {
	Audience     []Role    `json:"audience,omitempty"`    // empty means unspecified
	Priority     *float64  `json:"priority,omitzero"`     // 0 (optional) to 1 (required); nil if unspecified
	LastModified time.Time `json:"lastModified,omitzero"` // zero means unspecified
}

// A Role is a side of a conversation.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// TextContent is a text block. As in all text of a result, invalid UTF-8 is sent as U+FFFD.
type TextContent struct {
	Text        string       `json:"text"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Meta         `json:"_meta,omitempty"`
	Extra       Extra        `json:",inline,embed"`
}

// Text returns a text content block.
func Text(s string) *TextContent { return &TextContent{Text: s} }

// ImageContent is an image. Data is sent as base64.
type ImageContent struct {
	Data        []byte       `json:"data"`
	MIMEType    string       `json:"mimeType"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Meta         `json:"_meta,omitempty"`
	Extra       Extra        `json:",inline,embed"`
}

// AudioContent is audio. Data is sent as base64.
type AudioContent struct {
	Data        []byte       `json:"data"`
	MIMEType    string       `json:"mimeType"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Meta         `json:"_meta,omitempty"`
	Extra       Extra        `json:",inline,embed"`
}

// ResourceLink refers to a resource, which need not be listed.
type ResourceLink struct{ Resource }

// EmbeddedResource contains a resource.
type EmbeddedResource struct {
	Resource    *ResourceContents `json:"resource"`
	Annotations *Annotations      `json:"annotations,omitzero"`
	Meta        Meta              `json:"_meta,omitempty"`
	Extra       Extra             `json:",inline,embed"`
}

// ToolUseContent is a tool call by the model, in sampling.
type ToolUseContent struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // an object; nil is sent as {}
	Meta  Meta            `json:"_meta,omitempty"`
	Extra Extra           `json:",inline,embed"`
}

// ToolResultContent is the result of a [ToolUseContent], in sampling.
type ToolResultContent struct {
	ToolUseID         string          `json:"toolUseId"`
	Content           Contents        `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitzero"`
	IsError           bool            `json:"isError,omitzero"`
	Meta              Meta            `json:"_meta,omitempty"`
	Extra             Extra           `json:",inline,embed"`
}

// UnknownContent is a block whose type is unknown to this package. It is forwarded
// unchanged.
type UnknownContent struct {
	Type string          // its "type" member
	Raw  json.RawMessage // the whole object
}

func (*TextContent) contentType() string       { return "text" }
func (*ImageContent) contentType() string      { return "image" }
func (*AudioContent) contentType() string      { return "audio" }
func (*ResourceLink) contentType() string      { return "resource_link" }
func (*EmbeddedResource) contentType() string  { return "resource" }
func (*ToolUseContent) contentType() string    { return "tool_use" }
func (*ToolResultContent) contentType() string { return "tool_result" }
func (c *UnknownContent) contentType() string  { return c.Type }

func newContent(kind string) Content {
	switch kind {
	case "text":
		return new(TextContent)
	case "image":
		return new(ImageContent)
	case "audio":
		return new(AudioContent)
	case "resource_link":
		return new(ResourceLink)
	case "resource":
		return new(EmbeddedResource)
	case "tool_use":
		return new(ToolUseContent)
	case "tool_result":
		return new(ToolResultContent)
	}
	return nil
}

// Contents is a list of content. A nil list is sent as an empty list.
type Contents []Content

// MarshalJSON implements json.Marshaler.
func (c Contents) MarshalJSON() ([]byte, error) {
	return appendContents(nil, c)
}

// UnmarshalJSON implements json.Unmarshaler. A single block is decoded as a list of one, as
// sampling allows.
func (c *Contents) UnmarshalJSON(data []byte) error {
	list := Contents{}
	add := func(raw json.RawMessage) error {
		block, err := decodeContent(raw)
		if err != nil {
			return fmt.Errorf("content %d: %w", len(list), err)
		}
		list = append(list, block)
		return nil
	}
	scan := jsonscan.Get(data, 0)
	defer scan.Release()
	switch scan.Kind() {
	case 'n':
	case '[':
		scan.Array()
		for scan.Element() {
			if err := add(scan.Value()); err != nil {
				return err
			}
		}
	default:
		if err := add(data); err != nil {
			return err
		}
	}
	*c = list
	return scan.Err()
}

func decodeContent(raw json.RawMessage) (Content, error) {
	kind, ok := contentTypeOf(raw)
	if !ok {
		return nil, errors.New("mcp: content has no type")
	}
	block := newContent(kind)
	if block == nil {
		return &UnknownContent{Type: kind, Raw: append(json.RawMessage(nil), raw...)}, nil
	}
	if err := unmarshal(raw, block); err != nil {
		return nil, fmt.Errorf("mcp: %s", decodeProblem(kind+" content", err))
	}
	return block, nil
}

// contentTypeOf returns the type of an encoded block. ok is false if it has none.
func contentTypeOf(raw json.RawMessage) (kind string, ok bool) {
	quoted := jsonscan.Member(raw, "type")
	if len(quoted) <= len(`""`) || quoted[0] != '"' {
		return "", false
	}
	return jsonscan.Text(quoted, "text"), true
}

var errNilContent = errors.New("a content is nil")

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
		if c != nil && c.Annotations == nil && c.Meta == nil && len(c.Extra) == 0 {
			dst = append(dst, `{"type":"text","text":`...)
			dst = jsonscan.AppendString(dst, c.Text)
			return append(dst, '}'), nil
		}
	case *UnknownContent:
		if !jsonscan.IsObject(c.Raw) {
			return nil, errors.New("mcp: unknown content is not a JSON object")
		}
		return appendRaw(dst, "unknown content", c.Raw)
	case *ToolUseContent:
		if c != nil && c.Input == nil {
			filled := *c
			filled.Input = []byte("{}")
			return appendTyped(dst, &filled)
		}
	case *ResourceLink:
		if c != nil && c.Extra["type"] != nil { // would duplicate the type of the block
			untyped := *c
			untyped.Extra = maps.Clone(c.Extra)
			delete(untyped.Extra, "type")
			return appendTyped(dst, &untyped)
		}
	}
	return appendTyped(dst, c)
}

func appendTyped(dst []byte, c Content) ([]byte, error) {
	if reflect.ValueOf(c).IsNil() {
		return nil, errNilContent
	}
	body, err := marshal(c)
	return append(dst, body...), err
}

// The methods below implement encoding/json for the content types; see json.go.

// typed is a content block in its wire format.
type typed[T any] struct {
	Type  string `json:"type"`
	Block *T     `json:",inline,embed"`
}

// unmarshalContent decodes data into block. It returns an error if the type of data is not
// the type of block.
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/strictjson"
)

// Extra holds the members of an object that this package does not know. They are preserved
// when a message is passed on.
type Extra map[string]json.RawMessage

// marshal encodes v deterministically: equal values have equal encodings. Like encoding/json,
// it replaces invalid UTF-8 in strings; otherwise a single bad byte, for example in a database
// row, would make the whole result fail.
func marshal(v any) ([]byte, error) { return strictjson.MarshalWith(lenientEncoding, plainly(v)) }

var (
	replacing       = jsontext.AllowInvalidUTF8(true)
	lenientEncoding = jsonv2.JoinOptions(plainEncoding, replacing)
)

// marshalStrictly is like marshal but rejects invalid UTF-8. It is for params, where a
// replacement would change the request, and for state, where it would change keys.
func marshalStrictly(v any) ([]byte, error) { return strictjson.MarshalWith(plainEncoding, plainly(v)) }

// unmarshal decodes data strictly: member names are case-sensitive, no member may appear
// twice, and text must be valid UTF-8.
func unmarshal(data []byte, v any) error {
	return strictjson.UnmarshalWith(plainDecoding, data, plainly(v))
}

// unmarshalBase64 decodes media and blobs. Unlike the JSON package, it accepts every common
// form of base64: with line breaks, without padding, and with the URL-safe alphabet. Servers
// send all of these, and other clients accept them or do not decode the data.
func unmarshalBase64(d *jsontext.Decoder, data *[]byte) error {
	if d.PeekKind() != '"' {
		return strictjson.ErrSkip // the JSON package decodes null and rejects the rest
	}
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	text := token.String()
	if *data, err = base64.StdEncoding.DecodeString(text); err != nil {
		text = strings.TrimRight(standardBase64.Replace(text), "=")
		*data, err = base64.RawStdEncoding.DecodeString(text)
	}
	return err
}

var standardBase64 = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", "\t", "", " ", "")

// mustMarshal encodes values of this package's own types. Invalid UTF-8 in strings, such as
// the error that a call is cancelled with, is replaced.
func mustMarshal(v any) []byte { return strictjson.MustMarshalWith(plainEncoding, plainly(v)) }

// marshalValue encodes a value of a user-defined type strictly, and decode decodes into one;
// see [strictjson.UnmarshalValue]. marshalOutput replaces invalid UTF-8.
func marshalValue(v any) ([]byte, error) { return strictjson.MarshalValue(v) }

func marshalOutput(v any) ([]byte, error) { return strictjson.MarshalValueWith(replacing, v) }

func decode(data []byte, v any) error { return strictjson.UnmarshalValue(data, v) }

// decodeProblem describes to a peer why its value could not be decoded; see
// [strictjson.Problem].
func decodeProblem(what string, err error) string { return what + ": " + strictjson.Problem(err) }

// The methods below make encoding/json encode the protocol types in their wire format and
// preserve unknown members. Without them, encoding/json would encode Extra as a member with
// that name, and empty lists as null.

// A plainer is a type with methods for encoding/json. The encoder of this package encodes the
// result of plain instead: a pointer to the same value, of a type without these methods. With
// the methods, each nested value would be scanned twice (a list of 100 tools decoded five
// times as slowly), and options such as the handling of invalid UTF-8 would not reach it.
// Methods for the other JSON package would make it part of the public API.
type plainer interface{ plain() any }

// plainly returns v without the methods for encoding/json.
func plainly(v any) any {
	if p, ok := v.(plainer); ok {
		return p.plain()
	}
	return v
}

// plainEncoding and plainDecoding do the same for nested values. Calling the methods of
// nested values would scan them twice.
var (
	plainEncoding = jsonv2.WithMarshalers(jsonv2.MarshalToFunc(func(e *jsontext.Encoder, p plainer) error {
		return jsonv2.MarshalEncode(e, p.plain())
	}))
	plainDecoding = jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, p plainer) error {
		return jsonv2.UnmarshalDecode(d, p.plain())
	}), jsonv2.UnmarshalFromFunc(unmarshalBase64), strictjson.Integers))
)

func (c *CallToolParams) plain() any {
	type plain CallToolParams
	return (*plain)(c)
}

// MarshalJSON implements json.Marshaler.
func (c CallToolParams) MarshalJSON() ([]byte, error) { return marshal(&c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *CallToolParams) UnmarshalJSON(data []byte) error { return unmarshal(data, c) }

func (c *CallToolResult) plain() any {
	type plain CallToolResult
	return (*plain)(c)
}

// MarshalJSON implements json.Marshaler.
func (c CallToolResult) MarshalJSON() ([]byte, error) { return marshal(&c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *CallToolResult) UnmarshalJSON(data []byte) error { return unmarshal(data, c) }

func (c *ClientCapabilities) plain() any {
	type plain ClientCapabilities
	return (*plain)(c)
}

// MarshalJSON implements json.Marshaler.
func (c ClientCapabilities) MarshalJSON() ([]byte, error) { return marshal(&c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *ClientCapabilities) UnmarshalJSON(data []byte) error { return unmarshal(data, c) }

func (c *CompleteResult) plain() any {
	type plain CompleteResult
	return (*plain)(c)
}

// MarshalJSON implements json.Marshaler.
func (c CompleteResult) MarshalJSON() ([]byte, error) { return marshal(&c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *CompleteResult) UnmarshalJSON(data []byte) error { return unmarshal(data, c) }

func (c *Completion) plain() any {
	type plain Completion
	return (*plain)(c)
}

// MarshalJSON implements json.Marshaler.
func (c Completion) MarshalJSON() ([]byte, error) { return marshal(&c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Completion) UnmarshalJSON(data []byte) error { return unmarshal(data, c) }

func (c *CreateMessageParams) plain() any {
	type plain CreateMessageParams
	return (*plain)(c)
}

// MarshalJSON implements json.Marshaler.
func (c CreateMessageParams) MarshalJSON() ([]byte, error) { return marshal(&c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *CreateMessageParams) UnmarshalJSON(data []byte) error { return unmarshal(data, c) }

func (c *CreateMessageResult) plain() any {
	type plain CreateMessageResult
	return (*plain)(c)
}

// MarshalJSON implements json.Marshaler.
func (c CreateMessageResult) MarshalJSON() ([]byte, error) { return marshal(&c) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *CreateMessageResult) UnmarshalJSON(data []byte) error { return unmarshal(data, c) }

func (d *DiscoverResult) plain() any {
	type plain DiscoverResult
	return (*plain)(d)
}

// MarshalJSON implements json.Marshaler.
func (d DiscoverResult) MarshalJSON() ([]byte, error) { return marshal(&d) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *DiscoverResult) UnmarshalJSON(data []byte) error { return unmarshal(data, d) }

func (e *ElicitResult) plain() any {
	type plain ElicitResult
	return (*plain)(e)
}

// MarshalJSON implements json.Marshaler.
func (e ElicitResult) MarshalJSON() ([]byte, error) { return marshal(&e) }

// UnmarshalJSON implements json.Unmarshaler.
func (e *ElicitResult) UnmarshalJSON(data []byte) error { return unmarshal(data, e) }

func (e *EmptyResult) plain() any {
	type plain EmptyResult
	return (*plain)(e)
}

// MarshalJSON implements json.Marshaler.
func (e EmptyResult) MarshalJSON() ([]byte, error) { return marshal(&e) }

// UnmarshalJSON implements json.Unmarshaler.
func (e *EmptyResult) UnmarshalJSON(data []byte) error { return unmarshal(data, e) }

func (g *GetPromptParams) plain() any {
	type plain GetPromptParams
	return (*plain)(g)
}

// MarshalJSON implements json.Marshaler.
func (g GetPromptParams) MarshalJSON() ([]byte, error) { return marshal(&g) }

// UnmarshalJSON implements json.Unmarshaler.
func (g *GetPromptParams) UnmarshalJSON(data []byte) error { return unmarshal(data, g) }

func (g *GetPromptResult) plain() any {
	type plain GetPromptResult
	return (*plain)(g)
}

// MarshalJSON implements json.Marshaler.
func (g GetPromptResult) MarshalJSON() ([]byte, error) { return marshal(&g) }

// UnmarshalJSON implements json.Unmarshaler.
func (g *GetPromptResult) UnmarshalJSON(data []byte) error { return unmarshal(data, g) }

func (i *Implementation) plain() any {
	type plain Implementation
	return (*plain)(i)
}

// MarshalJSON implements json.Marshaler.
func (i Implementation) MarshalJSON() ([]byte, error) { return marshal(&i) }

// UnmarshalJSON implements json.Unmarshaler.
func (i *Implementation) UnmarshalJSON(data []byte) error { return unmarshal(data, i) }

func (i *InputRequired) plain() any {
	type plain InputRequired
	return (*plain)(i)
}

// MarshalJSON implements json.Marshaler.
func (i InputRequired) MarshalJSON() ([]byte, error) { return marshal(&i) }

// UnmarshalJSON implements json.Unmarshaler.
func (i *InputRequired) UnmarshalJSON(data []byte) error { return unmarshal(data, i) }

func (l *ListPromptsResult) plain() any {
	type plain ListPromptsResult
	return (*plain)(l)
}

// MarshalJSON implements json.Marshaler.
func (l ListPromptsResult) MarshalJSON() ([]byte, error) { return marshal(&l) }

// UnmarshalJSON implements json.Unmarshaler.
func (l *ListPromptsResult) UnmarshalJSON(data []byte) error { return unmarshal(data, l) }

func (l *ListResourceTemplatesResult) plain() any {
	type plain ListResourceTemplatesResult
	return (*plain)(l)
}

// MarshalJSON implements json.Marshaler.
func (l ListResourceTemplatesResult) MarshalJSON() ([]byte, error) { return marshal(&l) }

// UnmarshalJSON implements json.Unmarshaler.
func (l *ListResourceTemplatesResult) UnmarshalJSON(data []byte) error { return unmarshal(data, l) }

func (l *ListResourcesResult) plain() any {
	type plain ListResourcesResult
	return (*plain)(l)
}

// MarshalJSON implements json.Marshaler.
func (l ListResourcesResult) MarshalJSON() ([]byte, error) { return marshal(&l) }

// UnmarshalJSON implements json.Unmarshaler.
func (l *ListResourcesResult) UnmarshalJSON(data []byte) error { return unmarshal(data, l) }

func (l *ListRootsResult) plain() any {
	type plain ListRootsResult
	return (*plain)(l)
}

// MarshalJSON implements json.Marshaler.
func (l ListRootsResult) MarshalJSON() ([]byte, error) { return marshal(&l) }

// UnmarshalJSON implements json.Unmarshaler.
func (l *ListRootsResult) UnmarshalJSON(data []byte) error { return unmarshal(data, l) }

func (l *ListToolsResult) plain() any {
	type plain ListToolsResult
	return (*plain)(l)
}

// MarshalJSON implements json.Marshaler.
func (l ListToolsResult) MarshalJSON() ([]byte, error) { return marshal(&l) }

// UnmarshalJSON implements json.Unmarshaler.
func (l *ListToolsResult) UnmarshalJSON(data []byte) error { return unmarshal(data, l) }

func (l *ListenResult) plain() any {
	type plain ListenResult
	return (*plain)(l)
}

// MarshalJSON implements json.Marshaler.
func (l ListenResult) MarshalJSON() ([]byte, error) { return marshal(&l) }

// UnmarshalJSON implements json.Unmarshaler.
func (l *ListenResult) UnmarshalJSON(data []byte) error { return unmarshal(data, l) }

func (p *Prompt) plain() any {
	type plain Prompt
	return (*plain)(p)
}

// MarshalJSON implements json.Marshaler.
func (p Prompt) MarshalJSON() ([]byte, error) { return marshal(&p) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Prompt) UnmarshalJSON(data []byte) error { return unmarshal(data, p) }

func (p *PromptArgument) plain() any {
	type plain PromptArgument
	return (*plain)(p)
}

// MarshalJSON implements json.Marshaler.
func (p PromptArgument) MarshalJSON() ([]byte, error) { return marshal(&p) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *PromptArgument) UnmarshalJSON(data []byte) error { return unmarshal(data, p) }

func (r *ReadResourceParams) plain() any {
	type plain ReadResourceParams
	return (*plain)(r)
}

// MarshalJSON implements json.Marshaler.
func (r ReadResourceParams) MarshalJSON() ([]byte, error) { return marshal(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *ReadResourceParams) UnmarshalJSON(data []byte) error { return unmarshal(data, r) }

func (r *ReadResourceResult) plain() any {
	type plain ReadResourceResult
	return (*plain)(r)
}

// MarshalJSON implements json.Marshaler.
func (r ReadResourceResult) MarshalJSON() ([]byte, error) { return marshal(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *ReadResourceResult) UnmarshalJSON(data []byte) error { return unmarshal(data, r) }

func (r *Resource) plain() any {
	type plain Resource
	return (*plain)(r)
}

// MarshalJSON implements json.Marshaler.
func (r Resource) MarshalJSON() ([]byte, error) { return marshal(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *Resource) UnmarshalJSON(data []byte) error { return unmarshal(data, r) }

func (r *ResourceTemplate) plain() any {
	type plain ResourceTemplate
	return (*plain)(r)
}

// MarshalJSON implements json.Marshaler.
func (r ResourceTemplate) MarshalJSON() ([]byte, error) { return marshal(&r) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *ResourceTemplate) UnmarshalJSON(data []byte) error { return unmarshal(data, r) }

func (s *ServerCapabilities) plain() any {
	type plain ServerCapabilities
	return (*plain)(s)
}

// MarshalJSON implements json.Marshaler.
func (s ServerCapabilities) MarshalJSON() ([]byte, error) { return marshal(&s) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *ServerCapabilities) UnmarshalJSON(data []byte) error { return unmarshal(data, s) }

func (s *SubscriptionFilter) plain() any {
	type plain SubscriptionFilter
	return (*plain)(s)
}

// MarshalJSON implements json.Marshaler.
func (s SubscriptionFilter) MarshalJSON() ([]byte, error) { return marshal(&s) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *SubscriptionFilter) UnmarshalJSON(data []byte) error { return unmarshal(data, s) }

func (t *Tool) plain() any {
	type plain Tool
	return (*plain)(t)
}

// MarshalJSON implements json.Marshaler.
func (t Tool) MarshalJSON() ([]byte, error) { return marshal(&t) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Tool) UnmarshalJSON(data []byte) error { return unmarshal(data, t) }

func (t *ToolAnnotations) plain() any {
	type plain ToolAnnotations
	return (*plain)(t)
}

// MarshalJSON implements json.Marshaler.
func (t ToolAnnotations) MarshalJSON() ([]byte, error) { return marshal(&t) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *ToolAnnotations) UnmarshalJSON(data []byte) error { return unmarshal(data, t) }

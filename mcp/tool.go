// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
)

// A Tool describes a tool. A struct that embeds a Tool, or another type of this package that
// is encoded as JSON, has its MarshalJSON too, and so loses its own fields: give the field a name.
type Tool struct {
	Name        string `json:"name"` // set by [Mux.Tool]
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// InputSchema is the JSON Schema of the arguments. Its root must have the type object. If
	// it is nil, [ToolFunc] infers it; for other handlers, nil means any object.
	InputSchema json.RawMessage `json:"inputSchema"`
	// OutputSchema is the JSON Schema of the structured content; nil means none.
	OutputSchema json.RawMessage  `json:"outputSchema,omitzero"`
	Annotations  *ToolAnnotations `json:"annotations,omitzero"`
	Icons        []Icon           `json:"icons,omitempty"`
	Meta         Meta             `json:"_meta,omitempty"`
	Extra        Extra            `json:",inline,embed"`

	encodings *toolEncodings
}

// ToolAnnotations are hints about a tool's behaviour. A nil field is not sent, which means
// the default. Use new(false) to send false.
type ToolAnnotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitzero"`    // default false
	DestructiveHint *bool  `json:"destructiveHint,omitzero"` // default true
	IdempotentHint  *bool  `json:"idempotentHint,omitzero"`  // default false
	OpenWorldHint   *bool  `json:"openWorldHint,omitzero"`   // default true
	Extra           Extra  `json:",inline,embed"`
}

// CallToolParams are the params of tools/call.
type CallToolParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"` // an object; absent and null mean {}
	Resume
	Meta  Meta  `json:"_meta,omitempty"`
	Extra Extra `json:",inline,embed"`
}

// CallToolResult is the result of tools/call.
type CallToolResult struct {
	ResultBase
	Content Contents `json:"content"`
	// StructuredContent is raw JSON. Nil means none; null is a value.
	StructuredContent json.RawMessage `json:"structuredContent,omitzero"`
	// IsError reports that the tool failed; Content explains why to the model.
	IsError bool `json:"isError,omitzero"`

	failure *failure // nil if the error is unknown
	mended  []string // see Mended
}

// Mended returns JSON pointers to the arguments that were changed to match the schema of the
// tool, which happens only with [MuxOptions].Lenient. It is meant for middleware and is not
// sent to the client.
func (r *CallToolResult) Mended() []string {
	if r == nil {
		return nil
	}
	return r.mended
}

// TextResult returns a tool result with one text content block.
func TextResult(text string) *CallToolResult {
	r := &struct { // one allocation, because most calls end here
		CallToolResult

		contents [1]Content
		text     TextContent
	}{text: TextContent{Text: text}}
	r.contents[0] = &r.text
	r.Content = r.contents[:]
	return &r.CallToolResult
}

// ListParams are the params of the list methods.
type ListParams struct {
	Cursor *string `json:"cursor,omitzero"` // nil means the first page
	Meta   Meta    `json:"_meta,omitempty"`
}

// ListToolsResult is the result of tools/list. The tools are shared; copy a tool before
// modifying it.
type ListToolsResult struct {
	ResultBase
	Cacheable
	Page
	Tools []*Tool `json:"tools"`
}

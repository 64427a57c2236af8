// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "encoding/json"

// A Tool describes a tool.
type Tool struct {
	Name        string `json:"name"` // left empty, the name it is registered under
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// InputSchema is a JSON Schema whose root has type object. [ToolFunc]
	// infers it if it is nil; for other handlers nil means any object.
	InputSchema json.RawMessage `json:"inputSchema"`
	// OutputSchema is the JSON Schema of the structured content; nil means none.
	OutputSchema json.RawMessage  `json:"outputSchema,omitzero"`
	Annotations  *ToolAnnotations `json:"annotations,omitzero"`
	Icons        []Icon           `json:"icons,omitempty"`
	Meta         Meta             `json:"_meta,omitempty"`
	Extra        Extra            `json:",embed"`

	wire *wireTool
}

// ToolAnnotations are hints about a tool's behaviour. A nil field is left out,
// which leaves the client with the default; a pointer sends the value, false
// included. [new] makes one: new(false).
type ToolAnnotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitzero"`    // default false
	DestructiveHint *bool  `json:"destructiveHint,omitzero"` // default true
	IdempotentHint  *bool  `json:"idempotentHint,omitzero"`  // default false
	OpenWorldHint   *bool  `json:"openWorldHint,omitzero"`   // default true
	Extra           Extra  `json:",embed"`
}

// CallToolParams are the params of tools/call.
type CallToolParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"` // an object; absent and null mean {}
	Retry
	Meta  Meta  `json:"_meta,omitempty"`
	Extra Extra `json:",embed"`
}

// CallToolResult answers tools/call.
type CallToolResult struct {
	ResultBase
	Content Contents `json:"content"`
	// StructuredContent is raw JSON. Nil means that there is none; null is a value.
	StructuredContent json.RawMessage `json:"structuredContent,omitzero"`
	// IsError says that the tool failed, and that Content tells the model why.
	IsError bool `json:"isError,omitzero"`
}

// TextResult is a tool result of one text block.
func TextResult(text string) *CallToolResult {
	return &CallToolResult{Content: Contents{Text(text)}}
}

// ErrorResult is a failed tool result with one text block for the model.
func ErrorResult(text string) *CallToolResult {
	return &CallToolResult{Content: Contents{Text(text)}, IsError: true}
}

// ListParams are the params of the list methods.
type ListParams struct {
	Cursor *string `json:"cursor,omitzero"` // nil means the first page
	Meta   Meta    `json:"_meta,omitempty"`
}

// ListToolsResult answers tools/list. The tools are shared: to change one, make
// a copy of it.
type ListToolsResult struct {
	ResultBase
	Cacheable
	Page
	Tools []*Tool `json:"tools"`
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"encoding/json"

	"github.com/go-psi/psi/mcp"
)

// tools are mistakes with the arguments, results and schemas of tools.
var tools = []mistake{
	{"a string as arguments", panics(func() { says[string](nil) }), []string{"mcp: ToolFunc at", here, "they must be a struct or a map with string keys, not string"}},
	{"an InputSchema that is no object", panics(func() { says[map[string]any](&mcp.Tool{InputSchema: json.RawMessage(`{"type":"array"}`)}) }),
		[]string{"mcp: ToolFunc at", here, `the root of InputSchema must have "type":"object"`}},
	{"an OutputSchema of a tool of text", panics(func() { says[none](&mcp.Tool{OutputSchema: json.RawMessage(`{"type":"object"}`)}) }),
		[]string{"mcp: ToolFunc at", here, "a function that returns string does not produce; return a struct or a *CallToolResult"}},
}

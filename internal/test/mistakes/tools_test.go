// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"context"
	"encoding/json"

	"github.com/go-psi/psi/mcp"
)

type closer struct {
	C interface{ Close() error } `json:"c"`
}

type sum struct {
	A int `json:"a"`
	B struct {
		C []string `json:"c"`
	} `json:"b,omitzero"`
}

func withSchema(schema string) func() error {
	return panics(func() { says[sum](&mcp.Tool{InputSchema: json.RawMessage(schema)}) })
}

// tools are mistakes in the arguments, results and schemas of tools.
var tools = []mistake{
	{"a string as arguments", panics(func() { says[string](nil) }), []string{"mcp: ToolFunc at", here, "they must be a struct or a map with string keys, not string"}},
	{"a channel as an argument", panics(func() { says[struct{ C chan int }](nil) }), []string{"mcp: ToolFunc at", here, "struct.C: a Go chan has no JSON form"}},
	{"a function as output", panics(func() {
		mcp.ToolFunc(func(context.Context, none) (func(), error) { return nil, nil }, nil)
	}), []string{"mcp: ToolFunc at", here, "output", "a Go func has no JSON form"}},
	{"no exported fields", panics(func() { says[struct{ hidden int }](nil) }), []string{"mcp: ToolFunc at", here, "no exported fields"}},
	{"an interface as an argument", panics(func() { says[closer](nil) }),
		[]string{"mcp: ToolFunc at", here, "mistakes_test.closer.C is an interface with methods, which does not say which type to decode; use a type, or any"}},
	{"numbers as keys", panics(func() { says[struct{ M map[int]string }](nil) }),
		[]string{"mcp: ToolFunc at", here, "struct { M map[int]string }.M is a map whose keys are numbers, but any text can be a key in JSON; use map[string]string"}},
	{"two fields with one name", panics(func() { says[twoNames](nil) }), []string{"mcp: ToolFunc at", here, `fields A and B conflict over JSON object name "B"`}},
	{"an option of the json tag", panics(func() { says[misspelt](nil) }), []string{"mcp: ToolFunc at", here, "omitempty"}},
	{"an InputSchema that is not JSON", withSchema(`{"type":`), []string{"mcp: ToolFunc at", here, "InputSchema"}},
	{"an InputSchema of an unknown type", withSchema(`{"type":"object","properties":{"a":{"type":"int"}}}`), []string{"mcp: ToolFunc at", here, "/properties/a/type", `allowed:`}},
	{"an InputSchema that is no object", panics(func() { says[map[string]any](&mcp.Tool{InputSchema: json.RawMessage(`{"type":"array"}`)}) }),
		[]string{"mcp: ToolFunc at", here, `the root of InputSchema must have "type":"object"`}},
	{"an InputSchema with another property", withSchema(`{"type":"object","properties":{"aa":{"type":"integer"}}}`),
		[]string{"mcp: ToolFunc at", here, `InputSchema: /aa has no field in mistakes_test.sum; did you mean "a"?`}},
	{"an InputSchema with another property inside", withSchema(`{"type":"object","properties":{"b":{"type":"object","properties":{"d":{}}}}}`),
		[]string{`InputSchema: /b/d has no field in mistakes_test.sum; did you mean "c"?`}},
	{"an InputSchema with another type", withSchema(`{"type":"object","properties":{"a":{"type":"number"}}}`),
		[]string{"mcp: ToolFunc at", here, "InputSchema: /a has the type number, but mistakes_test.sum takes integer there"}},
	{"an InputSchema with other items", withSchema(`{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"array","items":{"type":"object"}}}}}}`),
		[]string{"InputSchema: /b/c/- has the type object, but mistakes_test.sum takes string there"}},
	{"an InputSchema without a property", withSchema(`{"type":"object","properties":{},"additionalProperties":false}`),
		[]string{"mcp: ToolFunc at", here, "InputSchema: it leaves no way to set /a of mistakes_test.sum; add the property, or make the field optional"}},
	{"an InputSchema with a wrong default", withSchema(`{"type":"object","properties":{"a":{"type":"integer","maximum":3,"default":4}}}`),
		[]string{"mcp: ToolFunc at", here, `the default at "/properties/a" does not fit: (root): expected number of at most 3`}},
	{"an InputSchema with a required default", withSchema(`{"type":"object","properties":{"a":{"type":"integer","default":4}},"required":["a"]}`),
		[]string{"mcp: ToolFunc at", here, `"a" at "/required" is required and has a default, which would never be used; remove one of the two`}},
	{"an OutputSchema of a tool of text", panics(func() { says[none](&mcp.Tool{OutputSchema: json.RawMessage(`{"type":"object"}`)}) }),
		[]string{"mcp: ToolFunc at", here, "a function that returns string does not produce; return a struct or a *CallToolResult"}},
	{"a word that does not exist", panics(func() {
		says[struct {
			F int `jsonschema:"min=1,max=3"`
		}](nil)
	}), []string{"mcp: ToolFunc at", here, `struct.F: the jsonschema tag has the unknown word "min"; did you mean "minimum"?`}},
	{"a word of another type", panics(func() {
		says[struct {
			F string `jsonschema:"minimum=1"`
		}](nil)
	}), []string{"mcp: ToolFunc at", here, "struct.F: minimum in the jsonschema tag does not apply to a string, which takes"}},
	{"a default out of the enum", panics(func() {
		says[struct {
			F string `jsonschema:"enum=x,enum=y,default=z"`
		}](nil)
	}), []string{"mcp: ToolFunc at", here, "struct.F: the default in the jsonschema tag does not fit", `allowed: "x", "y"`}},
	{"a default above the maximum", panics(func() {
		says[struct {
			F int `jsonschema:"maximum=3,default=4"`
		}](nil)
	}), []string{"mcp: ToolFunc at", here, "struct.F: the default in the jsonschema tag does not fit", "at most 3"}},
	{"a default that is no number", panics(func() {
		says[struct {
			F int `jsonschema:"default=many"`
		}](nil)
	}), []string{"mcp: ToolFunc at", here, "struct.F: default=many in the jsonschema tag: it must be a number"}},
	{"a pattern that does not compile", panics(func() {
		says[struct {
			F string `jsonschema:"pattern=[a-z"`
		}](nil)
	}), []string{"mcp: ToolFunc at", here, "struct.F: pattern=[a-z in the jsonschema tag", "missing closing ]"}},
	{"a required default", panics(func() {
		says[struct {
			F int `jsonschema:"required,default=3"`
		}](nil)
	}), []string{"mcp: ToolFunc at", here, "struct.F: it is required and has a default", "remove one of the two"}},
	{"required and omitempty", panics(func() {
		says[struct {
			F string `json:",omitempty" jsonschema:"required"`
		}](nil)
	}), []string{"mcp: ToolFunc at", here, "struct.F: it is required and has omitempty", "remove one of the two"}},
	{"a word after a description", panics(func() {
		says[struct {
			F string `jsonschema:"description=a city,maxLength=3"`
		}](nil)
	}), []string{"mcp: ToolFunc at", here, `struct.F: a description runs to the end of its tag`, "put description last"}},
}

type twoNames struct {
	A int `json:"B"`
	B int
}

type misspelt struct {
	A int `json:"a,omitEmpty"` //nolint:staticcheck // the mistake
}

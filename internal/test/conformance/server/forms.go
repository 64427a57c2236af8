// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"

	"github.com/go-psi/psi/mcp"
)

// addForms adds the tools that elicit forms of various kinds.
func addForms(mux *mcp.Mux) {
	mux.Tool("test_elicitation_sep1034_defaults", mcp.ToolFunc(defaults, about("Shows a form whose fields are filled in already.")))
	mux.Tool("test_elicitation_sep1330_enums", mcp.ToolFunc(enums, about("Shows a form with every kind of choice.")))
}

type profile struct {
	Name     string  `json:"name" jsonschema:"default=John Doe"`
	Age      int     `json:"age" jsonschema:"default=30"`
	Score    float64 `json:"score" jsonschema:"default=95.5"`
	Status   string  `json:"status" jsonschema:"enum=active,enum=inactive,enum=pending,default=active"`
	Verified bool    `json:"verified" jsonschema:"default=true"`
}

func defaults(ctx context.Context, _ none) (string, error) {
	answer, err := mcp.Elicit[profile](ctx, "profile", "Is this you?")
	return described(answer, err)
}

// choices is written by hand because no Go type has titles, and enumNames is only known to
// old clients.
const choices = `{
	"type": "object",
	"properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [
			{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [
			{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}]}}
	}
}`

func enums(ctx context.Context, _ none) (string, error) {
	var answer json.RawMessage
	err := mcp.Ask(ctx, mcp.ElicitSchemaQuestion("choices", "Which ones?", json.RawMessage(choices), &answer))
	return described(string(answer), err)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// addSchemas adds the tools with hand-written schemas.
func addSchemas(mux *mcp.Mux) {
	mux.Tool("json_schema_2020_12_tool", mcp.ToolFunc(contact, &mcp.Tool{
		Description: "Takes a contact, described with all that JSON Schema 2020-12 has for it.",
		InputSchema: json.RawMessage(contactSchema),
	}))
	mux.Tool("test_x_mcp_header", mcp.ToolFunc(routed, &mcp.Tool{
		Description: "Takes an argument that also stands in a header, for those who route by it.",
		InputSchema: json.RawMessage(routedSchema),
	}))
}

const contactSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

type contactIn struct {
	Name    string `json:"name"`
	Address struct {
		Street string `json:"street"`
		City   string `json:"city"`
	} `json:"address"`
	ContactMethod string `json:"contactMethod"`
	Phone         string `json:"phone"`
	Email         string `json:"email"`
}

func contact(_ context.Context, in contactIn) (string, error) {
	if in.ContactMethod == "phone" {
		return fmt.Sprintf("%s can be called: %s.", in.Name, in.Phone), nil
	}
	return fmt.Sprintf("%s can be written to: %s.", in.Name, in.Email), nil
}

const routedSchema = `{
	"type": "object",
	"properties": {
		"region": {"type": "string", "description": "where to run", "x-mcp-header": "Region"}
	},
	"required": ["region"],
	"additionalProperties": false
}`

type routedIn struct {
	Region string `json:"region"`
}

func routed(_ context.Context, in routedIn) (string, error) {
	return fmt.Sprintf("This ran in %q.", in.Region), nil
}

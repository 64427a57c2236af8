// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A schema from an OpenAPI document refers to #/components/schemas. What it says there is
// checked before the function is called.
func TestFindingR1ArgumentsOfOpenAPISchema(t *testing.T) {
	type args struct {
		File string `json:"file"`
	}
	mux := mcp.NewMux("test", "1", &mcp.MuxOptions{NoLint: true}) // some clients refuse such a reference
	mux.Tool("read", mcp.ToolFunc(func(_ context.Context, in args) (string, error) { return "read " + in.File, nil },
		&mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{"file":{"$ref":"#/components/schemas/FileName"}},"required":["file"],
			"components":{"schemas":{"FileName":{"type":"string","pattern":"^[a-z]+\\.txt$"}}}}`)}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for file, isError := range map[string]bool{"a.txt": false, "../../etc/passwd": true} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "read", Arguments: json.RawMessage(`{"file":"` + file + `"}`)})
			if err != nil || res.IsError != isError {
				t.Errorf("%s: %+v, %v", file, res, err)
			}
		}
	})
}

// Many clients reject a tool whose input schema has a list of types. An optional argument
// is therefore described without null, which is accepted all the same: models send it for
// what they mean to leave out.
func TestFindingR24OptionalArgumentsHaveOneType(t *testing.T) {
	type item struct {
		Note *string `json:"note"`
	}
	type args struct {
		Name  *string            `json:"name"`
		Limit *int               `json:"limit" jsonschema:"minimum=1"`
		Item  *item              `json:"item"`
		Items []*item            `json:"items,omitempty"`
		Rates map[string]*string `json:"rates,omitempty"`
	}
	mux := mcp.NewMux("test", "1", nil)
	mux.Tool("find", mcp.ToolFunc(func(_ context.Context, in args) (*mcp.CallToolResult, error) {
		if in.Name != nil || in.Limit != nil || in.Item != nil {
			return mcp.TextResult("not nil"), nil
		}
		return mcp.TextResult("nil"), nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if schema := string(list.Tools[0].InputSchema); strings.Contains(schema, "null") {
			t.Errorf("the input schema allows null: %s", schema)
		}
		for _, given := range []string{`{}`, `{"name":null,"limit":null,"item":null,"rates":{"a":null},"items":[{"note":null}]}`} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "find", Arguments: json.RawMessage(given)})
			if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != "nil" {
				t.Errorf("%s: %+v, %v", given, res, err)
			}
		}
	})
}

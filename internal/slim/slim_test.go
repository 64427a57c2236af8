// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package slim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/internal/validator"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

const remedy = `import _ "github.com/go-psi/psi/jsonschema/full"`

// A server over stdio is small, and quick to start, because nothing that it needs
// links the full validator.
func TestFullValidatorIsNotLinked(t *testing.T) {
	if validator.Full != nil {
		t.Error("package mcp or mcpstdio imports jsonschema/full")
	}
}

type order struct {
	Item   string            `json:"item" jsonschema:"enum=tea,enum=coffee"`
	Count  int               `json:"count" jsonschema:"minimum=1,maximum=12,multipleOf=2"`
	Price  float64           `json:"price,omitempty" jsonschema:"multipleOf=0.25"`
	When   time.Time         `json:"when,omitzero"`
	Mail   string            `json:"mail,omitempty" jsonschema:"format=email,minLength=3"`
	Code   string            `json:"code,omitempty" jsonschema:"pattern=^[a-z]+$"`
	Extras []string          `json:"extras,omitempty" jsonschema:"uniqueItems=true,maxItems=3"`
	Notes  map[string]string `json:"notes,omitempty"`
	Gift   *order            `json:"gift,omitempty"`
}

// All that typed tools need is there: arguments are refused with a reason.
func TestTypedToolWithoutFull(t *testing.T) {
	mux := mcp.NewMux("slim", "v1", nil)
	mux.Tool("order", mcp.ToolFunc(func(_ context.Context, o order) (order, error) { return o, nil }, nil))
	for arguments, want := range map[string]string{
		`{"item":"tea","count":2}`: "",
		`{"item":"tea","count":2,"price":0.75,"when":"2026-01-31T13:00:00Z","mail":"a@b","code":"x","extras":["a","b"],"notes":{"a":"b"},"gift":{"item":"coffee","count":4}}`: "",
		`{"item":"tee","count":2}`:                    `/item: expected one of the allowed values, got string "tee"; allowed: "tea", "coffee"; did you mean "tea"?`,
		`{"item":"tea","count":3}`:                    `/count: expected multiple of 2, got number 3`,
		`{"item":"tea","count":2,"price":0.3}`:        `/price: expected multiple of 0.25, got number 0.3`,
		`{"item":"tea","count":2,"when":"now"}`:       `/when: expected date-time such as 2026-01-31T13:00:00Z, got string "now"`,
		`{"item":"tea","count":2,"extras":["a","a"]}`: `/extras: expected array without repeated items, got equal items at 0 and 1`,
		`{"item":"tea","count":2,"gift":{"count":2}}`: `/gift/item: expected string, got nothing (the property is required)`,
		`{"item":"tea","count":2,"cuont":2}`:          `/cuont: expected a known property, got unknown property`,
	} {
		req, err := mcp.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "order", Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Fatal(err)
		}
		text := "refused without a result"
		res, err := mcp.Serve(t.Context(), mux, req, nil, nil)
		if result, ok := res.(*mcp.CallToolResult); ok && err == nil {
			text = ""
			if result.IsError {
				text = result.Content[0].(*mcp.TextContent).Text
			}
		}
		if !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("%s: %s (%v), want %s", arguments, text, err, want)
		}
	}
}

// Forms are of the subset, with titles too.
func TestFormsWithoutFull(t *testing.T) {
	for _, form := range []string{
		`{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"r"}}}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},"minItems":1,"maxItems":2}}}`,
		`{"type":"object","properties":{"a":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}},"required":["a"]}`,
	} {
		schema, err := jsonschema.Compile([]byte(form), nil)
		if err != nil {
			t.Fatal(err)
		}
		for value, valid := range map[string]bool{`"r"`: !strings.Contains(form, "array"), `["r"]`: strings.Contains(form, "array"), `"b"`: false, `["b"]`: false} {
			if err := schema.Validate([]byte(`{"a":` + value + `}`)); (err == nil) != valid {
				t.Errorf("%s: %v", value, err)
			}
		}
	}
}

// Whoever needs more is told at once, and how to get it.
func TestMoreThanTheSubsetNamesFull(t *testing.T) {
	for schema, where := range map[string]string{
		`{"type":"object","properties":{"a":{"allOf":[true]}}}`:                 "/properties/a/allOf",
		`{"anyOf":[{"type":"string"},{"type":"integer"}]}`:                      "/anyOf",
		`{"patternProperties":{"^a":true}}`:                                     "/patternProperties",
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`:                 "/$schema",
		`{"properties":{"a/b":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$id":"x"}}}`: "/$defs/a/$id",
		`{"type":"strin"}`: "/type",
	} {
		_, err := jsonschema.Compile([]byte(schema), nil)
		if err == nil || !strings.Contains(err.Error(), where+" is beyond") || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%s: %v, want %s", schema, err, where)
		}
	}
}

func TestRegistrationNamesFull(t *testing.T) {
	defer func() {
		if r := fmt.Sprint(recover()); !strings.Contains(r, `tool "either"`) || !strings.Contains(r, remedy) {
			t.Errorf("registration says %s", r)
		}
	}()
	schema := json.RawMessage(`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`)
	either := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return &mcp.CallToolResult{}, nil })
	mcp.NewMux("slim", "v1", nil).Tool("either", mcp.Describe(either, &mcp.Tool{InputSchema: schema}))
}

func TestConnectNamesFull(t *testing.T) {
	client := mcp.NewClient("slim", "v1", nil)
	conn, err := client.Connect(t.Context(), mcpstdio.NewCommand(exec.Command("true"), nil))
	if conn != nil || err == nil || !strings.Contains(err.Error(), remedy) {
		t.Errorf("connected with %v", err)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
)

// respondingWith serves one tool, t, with an output schema, whose answer is content.
func respondingWith(schema, content string) mcp.Handler {
	return withLists(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodCallTool {
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(content)}, nil
		}
		return welcoming().ServeMCP(ctx, req)
	}), &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", OutputSchema: json.RawMessage(schema)}}})
}

// callResponding lists the tool of respondingWith and calls it.
func callResponding(t *testing.T, schema, content string) (*mcp.CallToolResult, error) {
	t.Helper()
	c := connect(t, respondingWith(schema, content), nil)
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return c.CallTool(t.Context(), tool("t", ""))
}

// SCH-02, SCH-07: output that cannot be validated does not pass for valid. The result
// comes along, so that a server with such a schema can still be used.
func TestFindingW12OutputThatCannotBeValidated(t *testing.T) {
	for schema, want := range map[string]string{
		`{"$ref":"https://example.com/other.json"}`:    `could not be validated: jsonschema: reference to "https://example.com/other.json" leaves the schema`,
		`{"$schema":"https://example.com/my-dialect"}`: `could not be validated: jsonschema: unknown dialect "https://example.com/my-dialect" in $schema; known are 2020-12`,
		`{"type":"strin"}`:                             `could not be validated: jsonschema: not a valid schema`,
		`{"properties":{"n":{"const":"2"}}}`:           `does not fit its schema: /n: expected the value "2", got number 1`,
	} {
		res, err := callResponding(t, schema, `{"n":1}`)
		output, ok := errors.AsType[*mcp.OutputError](err)
		if res != nil || !ok || !strings.Contains(err.Error(), want) {
			t.Fatalf("%s: %+v, %v", schema, res, err)
		}
		if output.Tool != "t" || string(output.Result.StructuredContent) != `{"n":1}` {
			t.Errorf("%s: the error is of %q, with %+v", schema, output.Tool, output.Result)
		}
		_, invalid := errors.AsType[*jsonschema.ValidationError](err)
		if invalid != strings.Contains(want, "does not fit") {
			t.Errorf("%s: invalid: %t", schema, invalid)
		}
	}
}

// recursive has three alternatives that lead to the same member.
const recursive = `{"$ref":"#/$defs/n","$defs":{"n":{"anyOf":[
	{"type":"object","properties":{"k":{"const":1},"a":{"$ref":"#/$defs/n"}},"required":["k"]},
	{"type":"object","properties":{"k":{"const":2},"a":{"$ref":"#/$defs/n"}},"required":["k"]},
	{"type":"object","properties":{"k":{"const":3},"a":{"$ref":"#/$defs/n"}},"required":["k"]}]}}}`

func nestedAnswer(depth int) string {
	return strings.Repeat(`{"k":3,"a":`, depth) + `{"k":3}` + strings.Repeat("}", depth)
}

// A server could hold a core of its client for as long as it wanted, with an answer of
// a few hundred bytes.
func TestFindingS4DeepOutput(t *testing.T) {
	if _, err := callResponding(t, recursive, nestedAnswer(60)); err != nil {
		t.Error(err)
	}
	large := `{"properties":{"s":{"pattern":"` + strings.Repeat("a{1000}b{1000}", 10) + `"}}}`
	_, err := callResponding(t, large, `{"s":"`+strings.Repeat("a", 100_000)+`"}`)
	if !errors.Is(err, jsonschema.ErrTooMuchWork) || !strings.Contains(err.Error(), "could not be validated") {
		t.Errorf("got %v", err)
	}
}

// The same in the arguments of a tool, and in the defaults of a form.
func TestFindingS4DeepArguments(t *testing.T) {
	mux := welcoming()
	schema := json.RawMessage(`{"type":"object","properties":{"filter":{"$ref":"#/$defs/n"}},` + strings.SplitN(recursive, ",", 2)[1])
	mux.Tool("search", mcp.ToolFunc(func(context.Context, map[string]any) (string, error) { return "found", nil }, &mcp.Tool{InputSchema: schema}))
	c := connect(t, mux, nil)
	for arguments, want := range map[string]string{
		`{"filter":` + nestedAnswer(60) + `}`:                                   "found",
		`{"filter":` + strings.Replace(nestedAnswer(60), "3}", `"3"}`, 1) + `}`: "/k: expected the value 1, got string \"3\"",
	} {
		res, err := c.CallTool(t.Context(), tool("search", arguments))
		if err != nil || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, want) {
			t.Errorf("%+v, %v; want %s", res, err, want)
		}
	}
}

// A form that cannot be read is refused before anybody fills it in. The defaults of one
// that can are validated in time that is linear in their depth.
func TestFindingS4W12Forms(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`:                                                                                                      "requestedSchema is not the schema of a form",
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/n","default":` + nestedAnswer(60) + `},"b":{"type":"string"}},"required":["b"],` + strings.SplitN(recursive, ",", 2)[1]: "/b: expected string, got nothing",
	} {
		asked := false
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return welcoming().ServeMCP(ctx, req)
			}
			params, err := json.Marshal(&mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(schema)})
			if err != nil {
				return nil, err
			}
			form := &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodElicit, Params: params}}}
			form.ResultType = mcp.ResultInputRequired
			return form, nil
		})
		opts := talkative("")
		opts.Elicit = func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked = true
			return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
		}
		res, err := connect(t, h, opts).CallTool(t.Context(), tool("t", ""))
		said := fmt.Sprint(err)
		if err == nil { // what the user did wrong fails the tool, not the call
			said = textOf(res)
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s, want %s", said, want)
		}
		if asked != strings.Contains(want, "/b") {
			t.Errorf("%s: the user was asked: %t", want, asked)
		}
	}
}

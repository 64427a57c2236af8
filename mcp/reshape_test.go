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

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// value returns a Preset that is the same for all calls.
func value(v any) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { return v, nil }
}

// described returns a tool with a schema, which returns its arguments.
func withSchema(schema string) mcp.Handler {
	return mcp.WithDescription(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult(string(req.Arguments())), nil
	}), &mcp.Tool{InputSchema: json.RawMessage(schema)})
}

// What a schema says of arguments follows their names. A condition that depends on a hidden
// argument is left out, because callers could not know whether it holds.
func TestReshapedSchema(t *testing.T) {
	for name, test := range map[string]struct {
		args           map[string]mcp.Arg
		schema, wanted string
	}{
		"names": {
			map[string]mcp.Arg{"a": {Name: "b"}, "b": {Name: "a"}},
			`{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":true}}`,
			`{"type":"object","required":["b"],"properties":{"b":{"type":"string"},"a":{"type":"integer"},"c":true}}`,
		},
		"a default": {
			map[string]mcp.Arg{"a": {Default: []int{1}}, "b": {Default: "x"}},
			`{"type":"object","required":["a","b"],"properties":{"a":{"type":"array","default":[2]},"b":true}}`,
			`{"type":"object","properties":{"a":{"default":[1],"type":"array"},"b":{"default":"x"}}}`,
		},
		"hidden": {
			map[string]mcp.Arg{"a": {Preset: value(1)}},
			`{"type":"object","required":["a","b"],"minProperties":2,"examples":[{"a":1,"b":2}],"properties":{"a":true,"b":{"description":"a"}}}`,
			`{"type":"object","required":["b"],"properties":{"b":{"description":"a"}}}`,
		},
		"conditions": {
			map[string]mcp.Arg{"a": {Name: "x"}, "h": {Preset: value(1)}},
			`{"type":"object","properties":{"a":{},"b":{},"h":{}},"allOf":[{"required":["a","h"]},{"required":["h"]}],` +
				`"anyOf":[{"required":["a"]},{"required":["b"]}],"oneOf":[{"required":["h"]},{"required":["b"]}],"not":{"required":["a","b"]},` +
				`"dependentRequired":{"a":["b","h"],"h":["b"],"b":["a"]},"dependencies":{"a":{"required":["b"]}},` +
				`"if":{"properties":{"h":{"const":1}}},"then":{"required":["a"]}}`,
			`{"type":"object","properties":{"x":{},"b":{}},"allOf":[{"required":["x"]},{}],` +
				`"anyOf":[{"required":["x"]},{"required":["b"]}],"not":{"required":["x","b"]},` +
				`"dependentRequired":{"b":["x"]},"dependencies":{"x":{"required":["b"]}}}`,
		},
		"a condition": {
			map[string]mcp.Arg{"a": {Name: "x"}},
			`{"type":"object","properties":{"a":{}},"if":{"required":["a"]},"then":{"properties":{"a":{"minLength":1}}},"else":false}`,
			`{"type":"object","properties":{"x":{}},"if":{"required":["x"]},"then":{"properties":{"x":{"minLength":1}}},"else":false}`,
		},
		"definitions": {
			map[string]mcp.Arg{"a": {Name: "x"}, "h": {Preset: value(1)}},
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/Same"},"h":{},"b":{}},"allOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}],` +
				`"anyOf":[{"$ref":"#/$defs/Far"},{"required":["b"]}],"oneOf":[{"$ref":"#/$defs/B"},{"properties":{"b":{"$ref":"#/$defs/Same"}}}],"not":{"$ref":"#/$defs/H"},` +
				`"$defs":{"A":{"required":["a"]},"B":{"required":["b"]},"H":{"required":["h"]},"Far":{"allOf":[{"$ref":"#/$defs/H"},{"$ref":"#/$defs/Far"}]},"Same":{"properties":{"a":{},"h":{}}}}}`,
			`{"type":"object","properties":{"x":{"$ref":"#/$defs/Same"},"b":{}},"allOf":[{},{"$ref":"#/$defs/B"}],` +
				`"oneOf":[{"$ref":"#/$defs/B"},{"properties":{"b":{"$ref":"#/$defs/Same"}}}],` +
				`"$defs":{"A":{"required":["a"]},"B":{"required":["b"]},"H":{"required":["h"]},"Far":{"allOf":[{"$ref":"#/$defs/H"},{"$ref":"#/$defs/Far"}]},"Same":{"properties":{"a":{},"h":{}}}}}`,
		},
		"references": {
			map[string]mcp.Arg{"a": {Name: "x y"}, "h": {Preset: value(1)}},
			`{"type":"object","$defs":{"d":{"type":"string"}},"properties":{"a":{"type":"array","items":{"type":"string"}},"h":{"$ref":"#/properties/a/items"},` +
				`"b":{"$ref":"#/properties/a"},"c":{"items":{"$ref":"#/properties/h"}},"d":{"$ref":"#/$defs/d"}}}`,
			`{"$defs":{"argument-h":{"$ref":"#/properties/x%20y/items"},"d":{"type":"string"}},"type":"object","properties":{"x y":{"type":"array","items":{"type":"string"}},` +
				`"b":{"$ref":"#/properties/x%20y"},"c":{"items":{"$ref":"#/$defs/argument-h"}},"d":{"$ref":"#/$defs/d"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tool, _ := mcp.DescriptionOf(mcp.Reshape(withSchema(test.schema), mcp.Shape{Args: test.args})).(*mcp.Tool)
			if got := string(tool.InputSchema); got != test.wanted {
				t.Errorf("got  %s\nwant %s", got, test.wanted)
			}
		})
	}
}

// A tool of one's own in another shape: names, a default, a preset, and a shorter result. It
// mends arguments and asks questions as before.
func TestReshape(t *testing.T) {
	type form struct {
		Sure bool `json:"sure"`
	}
	type in struct {
		Path string `json:"path"`
		Root string `json:"root"`
		Max  int    `json:"max"`
	}
	tool := mcp.ToolFunc(func(ctx context.Context, in in) (map[string]any, error) {
		f, err := mcp.Elicit[form](ctx, "sure", "Delete "+in.Path+"?")
		return map[string]any{"deleted": in, "sure": f.Sure}, err
	}, nil)
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Lenient: true, Logger: quiet().Logger})
	mux.Tool("remove", mcp.Reshape(tool, mcp.Shape{
		Description: "Remove a file.",
		Args:        map[string]mcp.Arg{"path": {Name: "file"}, "max": {Default: 3}, "root": {Preset: value("/srv")}},
		Result: func(_ context.Context, r *mcp.CallToolResult) (*mcp.CallToolResult, error) {
			if strings.Contains(string(r.StructuredContent), "bad") {
				return nil, errors.New("no result today")
			}
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"got":` + string(r.StructuredContent) + `}`), Content: r.Content}, nil
		},
		OutputSchema: json.RawMessage(`{"type":"object","required":["got"]}`),
	}))
	client := mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcp.AcceptElicit(form{true})
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil || list.Tools[0].Name != "remove" || list.Tools[0].Description != "Remove a file." {
			t.Fatalf("got %v, %v", list, err)
		}
		if got := string(list.Tools[0].OutputSchema); got != `{"type":"object","required":["got"]}` {
			t.Errorf("the output schema is %s", got)
		}
		for args, want := range map[string]string{
			`{"file":"a"}`:                 `{"got":{"deleted":{"path":"a","root":"/srv","max":3},"sure":true}}`,
			`{"file":"a","max":"7","x":1}`: `{"got":{"deleted":{"path":"a","root":"/srv","max":7},"sure":true}}`, // mended
			`{"file":"a","root":"/etc"}`:   `{"got":{"deleted":{"path":"a","root":"/srv","max":3},"sure":true}}`, // mended
			`{"file":"bad"}`:               "no result today",
			`{"Root":"/etc","file":"a"}`:   `{"got":{"deleted":{"path":"a","root":"/srv","max":3},"sure":true}}`, // mended
			`{"file":["a"]}`:               "invalid arguments:\n/file: expected string, got array of 1 item",
			`{}`:                           "invalid arguments:\n/file: expected string, got nothing (the property is required)",
		} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "remove", Arguments: json.RawMessage(args)})
			if err != nil {
				t.Errorf("%s: %v", args, err)
				continue
			}
			got := string(res.StructuredContent)
			if res.IsError {
				got = textOf(res)
			}
			if got != want {
				t.Errorf("%s: got %s, want %s", args, got, want)
			}
		}
	})
}

// Results that are replaced do not have the output schema of the tool.
func TestReshapedOutputSchema(t *testing.T) {
	out := json.RawMessage(`{"type":"object"}`)
	tool := mcp.WithDescription(withSchema(`{}`), &mcp.Tool{InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: out})
	replace := func(_ context.Context, r *mcp.CallToolResult) (*mcp.CallToolResult, error) { return r, nil }
	for want, shape := range map[string]mcp.Shape{
		`{"type":"object"}`: {Description: "a"}, "": {Result: replace}, `{"type":"object","required":["a"]}`: {Result: replace, OutputSchema: []byte(`{"type":"object","required":["a"]}`)},
	} {
		if got, _ := mcp.DescriptionOf(mcp.Reshape(tool, shape)).(*mcp.Tool); string(got.OutputSchema) != want {
			t.Errorf("got %s, want %s", got.OutputSchema, want)
		}
	}
}

// What Result returns is checked as the output of a ToolFunc is.
func TestReshapedOutputIsChecked(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	mux := mcp.NewMux("m", "v1", quiet())
	for name, content := range map[string]string{"fits": `{"n":1}`, "other": `{"n":"x"}`, "none": ""} {
		mux.Tool(name, mcp.Reshape(mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil), mcp.Shape{
			OutputSchema: schema,
			Result: func(context.Context, *mcp.CallToolResult) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{StructuredContent: json.RawMessage(content), Content: mcp.Contents{mcp.Text("text")}}, nil
			},
		}))
	}
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for name, code := range map[string]int{"fits": 0, "other": mcp.CodeInternalError, "none": mcp.CodeInternalError} {
			_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
			if got := mcp.CodeOf(err); err != nil && got != code || (err == nil) != (code == 0) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// The middleware of a tool stays around it, and what it describes and declares stays known.
func TestReshapedChain(t *testing.T) {
	saw := ""
	watch := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			saw = string(req.Arguments())
			return next.ServeMCP(ctx, req)
		})
	}
	h := mcp.Chain(withSchema(`{"type":"object","properties":{"a":{"type":"integer"}}}`), watch)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.Reshape(mcp.Reshape(h, mcp.Shape{Args: map[string]mcp.Arg{"a": {Name: "b"}}}),
		mcp.Shape{Name: "t", Args: map[string]mcp.Arg{"b": {Name: "c"}}}))
	c := connect(t, mux, nil)
	if got := mustCall(t, c, "t", `{"c":1}`); got != `{"a":1}` || saw != `{"c":1}` {
		t.Errorf("got %s, and the middleware saw %s", got, saw)
	}
}

// A hidden argument cannot be set under its name in another case, which some servers ignore.
func TestHiddenInAnotherCase(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.Reshape(withSchema(`{"type":"object","properties":{"tenant":{},"q":{}}}`), mcp.Shape{Args: map[string]mcp.Arg{"tenant": {Preset: value(nil)}}}))
	c := connect(t, mux, nil)
	for args, want := range map[string]string{
		`{"q":1}`:           `{"q":1}`,
		`{"Tenant":1}`:      `invalid arguments: there is no argument "Tenant"`,
		`{"\u0074enant":1}`: `invalid arguments: there is no argument "tenant"`,
	} {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t", Arguments: json.RawMessage(args)})
		if err != nil || textOf(res) != want {
			t.Errorf("%s: got %v, %v, want %s", args, res, err, want)
		}
	}
}

func TestReshapePanics(t *testing.T) {
	tool := withSchema(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"object","properties":{"c":{}}}}}`)
	for reason, args := range map[string]map[string]mcp.Arg{
		`the tool has no argument "aa"; did you mean "a"?`:  {"aa": {Name: "x"}},
		`the arguments "a" and "b" would both be named "b"`: {"a": {Name: "b"}},
		`the arguments "a" and "b" are both renamed to "x"`: {"a": {Name: "x"}, "b": {Name: "x"}},
		`"b.c" is inside another argument`:                  {"b.c": {Name: "x"}},
		`the argument "a" has a Preset`:                     {"a": {Name: "x", Preset: value(1)}},
		`the default of the argument "a" cannot be encoded`: {"a": {Default: func() {}}},
		`default`: {"a": {Default: "one"}},
	} {
		wantPanic(t, func() { mcp.Reshape(tool, mcp.Shape{Args: args}) }, "Reshape at reshape_test.go:", reason)
	}
	wantPanic(t, func() { mcp.Reshape(tool, mcp.Shape{OutputSchema: []byte(`{"type":"object"}`)}) }, "an OutputSchema describes what Result returns")
	wantPanic(t, func() { mcp.Reshape(nil, mcp.Shape{}) }, "the handler is nil")
	wantPanic(t, func() { mcp.Reshape(promptSays("a"), mcp.Shape{}) }, "describes no tool")
	wantPanic(t, func() {
		mcp.NewMux("m", "v1", quiet()).Tool("a", mcp.Reshape(tool, mcp.Shape{Name: "b"}))
	}, "reshape_test.go:", `Tool.Name is "b"`)
}

// FuzzReshape checks that a schema in a new shape is well-formed, and that arguments keep their
// values on the way to the tool.
func FuzzReshape(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/properties/h"},"h":{}},"required":["h","a"]}`, `{"b":1}`)
	f.Add(`{"properties":{"a":true,"h":{}},"type":"object","if":{"required":["h"]},"allOf":[{"not":{}}],"$defs":[]}`, `{"b":null,"c":{"d":[]}}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		if !json.Valid([]byte(schema)) || !json.Valid([]byte(args)) {
			return
		}
		var h mcp.Handler
		err := mcp.NewMux("m", "v1", quiet()).Update(func(*mcp.Mux) {
			h = mcp.Reshape(withSchema(schema), mcp.Shape{Args: map[string]mcp.Arg{"a": {Name: "b"}, "h": {Preset: value(1)}}})
		})
		if err != nil {
			return
		}
		tool, _ := mcp.DescriptionOf(h).(*mcp.Tool)
		if !json.Valid(tool.InputSchema) {
			t.Fatalf("%s became %s", schema, tool.InputSchema)
		}
		req, err := mcp.NewRequest(mcp.MethodCallTool, json.RawMessage(fmt.Sprintf(`{"name":"t","arguments":%s}`, args)))
		if err != nil {
			return
		}
		res, err := h.ServeMCP(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		called, _ := res.(*mcp.CallToolResult)
		if called.IsError {
			return
		}
		var sent, got map[string]json.RawMessage
		if err := errors.Join(json.Unmarshal([]byte(args), &sent), json.Unmarshal([]byte(textOf(called)), &got)); err != nil {
			t.Fatal(err)
		}
		if string(got["h"]) != "1" || string(got["a"]) != string(sent["b"]) || len(got) != len(sent)+1 {
			t.Fatalf("%s became %s", args, textOf(called))
		}
	})
}

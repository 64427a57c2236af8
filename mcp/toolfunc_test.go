// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type point struct {
	X    int      `json:"x"`
	Tags []string `json:"tags,omitempty"`
}

// returns is a tool that returns v.
func returns[T any](v T) mcp.Handler {
	return mcp.ToolFunc(func(context.Context, none) (T, error) { return v, nil }, nil)
}

func TestToolOutputs(t *testing.T) {
	picture := &mcp.ImageContent{Data: []byte{1, 2}, MIMEType: "image/png"}
	mux := mcp.NewMux("m", "v1", quiet())
	for name, h := range map[string]mcp.Handler{
		"string":   returns("text"),
		"content":  returns(picture),
		"list":     returns([]mcp.Content{mcp.Text("a"), picture}),
		"contents": returns(mcp.Contents{mcp.Text("a"), mcp.Text("b")}),
		"result":   returns(mcp.TextResult("own")),
		"nothing":  returns(struct{}{}),
		"struct":   returns(point{X: 1}),
		"map":      returns(map[string]int{"x": 1}),
		"number":   returns(7),
		"array":    returns([]int{1, 2}),
	} {
		mux.Tool(name, h)
	}
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for name, want := range map[string]string{
			"string":   `text`,
			"content":  `*mcp.ImageContent`,
			"list":     "a\n*mcp.ImageContent",
			"contents": "a\nb",
			"result":   `own`,
			"nothing":  ``,
			"struct":   `{"x":1} {"x":1}`,
			"map":      `{"x":1} {"x":1}`,
			"number":   `7 7`,
			"array":    `[1,2] [1,2]`,
		} {
			res, err := c.CallTool(t.Context(), tool(name, ""))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got := textOf(res)
			if res.StructuredContent != nil {
				got += " " + string(res.StructuredContent)
			}
			if c.Version() != mcp.LatestVersion && res.StructuredContent == nil {
				want, _, _ = strings.Cut(want, " ") // the older eras have objects only
			}
			if got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})
}

// T60: what a nil slice, map or pointer encodes as fits the schema of its type.
func TestNilOutputs(t *testing.T) {
	type nested struct {
		List    []string       `json:"list"`
		Map     map[string]int `json:"map"`
		Pointer *point         `json:"pointer"`
		Bytes   []byte         `json:"bytes"`
		Any     any            `json:"any"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("nested", returns(nested{}))
	mux.Tool("slice", returns([]string(nil)))
	mux.Tool("map", returns(map[string]int(nil)))
	for _, name := range []string{"nested", "slice", "map"} {
		if res, err := callTool(t, mux, name, ""); err != nil || res.IsError {
			t.Errorf("%s: got %+v, %v", name, res, err)
		}
	}
	mux.Tool("pointer", returns((*point)(nil))) // neither an output nor an error
	_, err := callTool(t, mux, "pointer", "")
	wantCode(t, err, mcp.CodeInternalError)
}

// An error is told to the model, unless it is the protocol's.
func TestToolErrors(t *testing.T) {
	fails := func(err error) mcp.Handler {
		return mcp.ToolFunc(func(context.Context, none) (string, error) { return "", err }, nil)
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("plain", fails(errors.New("no such city")))
	mux.Tool("coded", fails(mcp.Errorf(42, "%w", io.EOF).WithData(1)))
	mux.Tool("wrapped", fails(fmt.Errorf("while booking: %w", mcp.Errorf(43, "full"))))
	mux.Tool("neither", returns((*mcp.CallToolResult)(nil)))
	mux.Tool("nil content", returns(mcp.Content(nil)))
	mux.Tool("nothing at all", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, nil }))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), tool("plain", ""))
		if err != nil || !res.IsError || textOf(res) != "no such city" {
			t.Errorf("plain: %+v, %v", res, err)
		}
		_, err = c.CallTool(t.Context(), tool("coded", ""))
		if e := new(mcp.Error); !errors.As(err, &e) || e.Code != 42 || e.Message != "EOF" || string(e.Data) != "1" {
			t.Errorf("coded: %v", err)
		}
		for name, code := range map[string]int{
			"wrapped": 43, "neither": mcp.CodeInternalError,
			"nil content": mcp.CodeInternalError, "nothing at all": mcp.CodeInternalError,
		} {
			_, err := c.CallTool(t.Context(), tool(name, ""))
			wantCode(t, err, code)
		}
	})
}

type greeting struct {
	Name  string  `json:"name"`
	Times int     `json:"times,omitempty" jsonschema:"default=2,minimum=1,maximum=9"`
	Mood  *string `json:"mood,omitempty"`
}

func greeter(t *testing.T) *mcp.Mux {
	t.Helper()
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("greet", mcp.ToolFunc(func(_ context.Context, in greeting) (string, error) {
		mood := "no"
		if in.Mood != nil {
			mood = *in.Mood
		}
		return fmt.Sprintf("%s %d %s", in.Name, in.Times, mood), nil
	}, nil))
	mux.Tool("any", mcp.ToolFunc(func(_ context.Context, in struct {
		N *int `json:"n,omitempty"`
	}) (string, error) {
		return fmt.Sprint(in.N == nil), nil
	}, nil))
	return mux
}

func TestDefaults(t *testing.T) {
	mux := greeter(t)
	for args, want := range map[string]string{
		`{"name":"a"}`:                          "a 2 no",
		`{"name":"a","times":3}`:                "a 3 no",
		`{"name":"a","times":null,"mood":null}`: "a 2 no", // T42: null is absent
		`{"name":"a","mood":"gay"}`:             "a 2 gay",
	} {
		if res, err := callTool(t, mux, "greet", args); err != nil || textOf(res) != want {
			t.Errorf("%s: got %q, %v", args, textOf(res), err)
		}
	}
}

// T42: no arguments, null and {} are equal.
func TestAbsentArguments(t *testing.T) {
	mcptest.Run(t, greeter(t), func(t *testing.T, c *mcp.Conn) {
		for _, params := range []string{
			`{"name":"any"}`, `{"name":"any","arguments":null}`, `{"name":"any","arguments":{}}`, `{"name":"any","arguments":{"n":null}}`,
		} {
			res, err := serveRaw(t, c, mcp.MethodCallTool, json.RawMessage(params))
			if err != nil || textOf(res.(*mcp.CallToolResult)) != "true" {
				t.Errorf("%s: got %+v, %v", params, res, err)
			}
		}
	})
	for _, era := range eras { // clients do not send what is no object
		p := newPeer(t, greeter(t), era)
		p.send(era.request("1", mcp.MethodCallTool, `"name":"any","arguments":[]`))
		wantCode(t, p.read().Error, mcp.CodeInvalidParams)
		p.finish()
	}
}

// T59: what a model is told of its mistake says where, what was expected and what
// stood there, in its own terms.
func TestInvalidArguments(t *testing.T) {
	type in struct {
		City  string             `json:"city" jsonschema:"minLength=2,pattern=^[A-Z]"`
		Kind  string             `json:"kind" jsonschema:"enum=train,enum=plane"`
		Seats int                `json:"seats" jsonschema:"minimum=1,maximum=9"`
		Date  string             `json:"date,omitempty" jsonschema:"format=date"`
		Via   []string           `json:"via,omitempty" jsonschema:"maxItems=2"`
		Extra map[string]int     `json:"extra,omitempty"`
		Who   struct{ A, B int } `json:"who,omitzero"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("book", mcp.ToolFunc(func(context.Context, in) (string, error) { return "booked", nil }, nil))
	const good = `"city":"Oslo","kind":"train","seats":1`
	for args, parts := range map[string][]string{
		`{}`:                                         {"city", "kind", "seats"},
		`{"city":1,"kind":"train","seats":1}`:        {"city", "string"},
		`{"city":"O","kind":"train","seats":1}`:      {"city", "2"},
		`{"city":"oslo","kind":"train","seats":1}`:   {"city", "^[A-Z]"},
		`{"city":"Oslo","kind":"boat","seats":1}`:    {"kind", "train", "plane", "boat"},
		`{"city":"Oslo","kind":"train","seats":0}`:   {"seats", "1", "0"},
		`{"city":"Oslo","kind":"train","seats":10}`:  {"seats", "9", "10"},
		`{"city":"Oslo","kind":"train","seats":1.5}`: {"seats", "integer", "1.5"},
		`{` + good + `,"date":"tomorrow"}`:           {"date", "tomorrow"},
		`{` + good + `,"via":["a","b","c"]}`:         {"via", "2"},
		`{` + good + `,"via":["a",7]}`:               {"via", "1", "string"},
		`{` + good + `,"extra":{"n":"x"}}`:           {"extra", "n", "integer"},
		`{` + good + `,"cty":"Oslo"}`:                {"cty"},
	} {
		res, err := callTool(t, mux, "book", args)
		if err != nil || !res.IsError {
			t.Errorf("%s: got %+v, %v", args, res, err)
			continue
		}
		text := textOf(res)
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q does not say %q", args, text, part)
			}
		}
		for _, slip := range []string{"%!", "map[", "[]string", "mcp.", "mcp_test", "<nil>"} {
			if strings.Contains(text, slip) {
				t.Errorf("%s: %q shows %q", args, text, slip)
			}
		}
	}
}

// Output that does not fit the schema is the server's mistake, not the model's.
func TestInvalidOutput(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.ToolFunc(func(context.Context, none) (map[string]any, error) {
		return map[string]any{"n": "x"}, nil
	}, &mcp.Tool{OutputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}))
	_, err := callTool(t, mux, "t", "")
	wantCode(t, err, mcp.CodeInternalError)
}

// A result of the function's own has the structured content that the schema promises.
func TestPromisedOutput(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.ToolFunc(func(_ context.Context, in struct {
		Output json.RawMessage `json:"output,omitzero"`
		Fail   bool            `json:"fail,omitzero"`
	}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: in.Output, IsError: in.Fail}, nil
	}, &mcp.Tool{OutputSchema: []byte(`{"type":"object","required":["n"]}`)}))
	for args, fits := range map[string]bool{`{"output":{"n":1}}`: true, `{"fail":true}`: true, `{}`: false, `{"output":{}}`: false} {
		if _, err := callTool(t, mux, "t", args); fits != (err == nil) || !fits && mcp.CodeOf(err) != mcp.CodeInternalError {
			t.Errorf("%s: got %v", args, err)
		}
	}
}

// T38: integers keep every digit, through a mount as well.
func TestLargeIntegers(t *testing.T) {
	const big = "9007199254740993"
	child := mcp.NewMux("child", "v1", quiet())
	child.Tool("echo", mcp.ToolFunc(func(ctx context.Context, in struct {
		N int64 `json:"n"`
	}) (*mcp.CallToolResult, error) {
		res := mcp.TextResult(string(mcp.RequestFromContext(ctx).Arguments()))
		res.StructuredContent = json.RawMessage(fmt.Sprintf(`{"n":%d}`, in.N))
		res.Meta = mcp.Meta{"example.com/n": mcp.RequestFromContext(ctx).Meta()["example.com/n"]}
		return res, nil
	}, nil))
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Mount("in_", child)
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		p := tool("in_echo", `{"n":`+big+`}`)
		p.Meta = mcp.Meta{"example.com/n": json.RawMessage(big)}
		res, err := c.CallTool(t.Context(), p)
		if err != nil || res.IsError {
			t.Fatalf("got %+v, %v", res, err)
		}
		if string(res.Meta["example.com/n"]) != big || string(res.StructuredContent) != `{"n":`+big+`}` || !strings.Contains(textOf(res), big) {
			t.Errorf("got %+v", res)
		}
	})
}

// A tool that does not describe itself can be called, and is not listed.
func TestUndescribedTool(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("hidden", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.TextResult("hi"), nil }))
	mux.Tool("shown", mcp.Describe(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult("hi"), nil
	}), &mcp.Tool{Description: "Shown."}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "hidden", ""); got != "hi" {
			t.Errorf("got %q", got)
		}
		res, err := c.ListTools(t.Context(), nil)
		if err != nil || len(res.Tools) != 1 || res.Tools[0].Name != "shown" || string(res.Tools[0].InputSchema) != `{"type":"object"}` {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

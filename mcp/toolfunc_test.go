// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type point struct {
	X    int      `json:"x"`
	Tags []string `json:"tags,omitempty"`
}

// returns returns a tool that returns v.
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
				want, _, _ = strings.Cut(want, " ") // older revisions allow only objects
			}
			if got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})
}

// T60: the encoding of a nil slice, map or pointer matches the schema of its type.
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

// A tool error is reported to the model, unless it is a protocol error.
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

// T42: absent arguments, null and {} are equivalent.
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
	for _, era := range eras { // clients send only objects
		p := newPeer(t, greeter(t), era)
		p.send(era.request("1", mcp.MethodCallTool, `"name":"any","arguments":[]`))
		wantCode(t, p.read().Error, mcp.CodeInvalidParams)
		p.finish()
	}
}

// T59: errors about arguments tell the model where the mistake is, what was expected and
// what was found, in terms of the arguments.
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

// A result created by the function must have the structured content that the schema
// requires.
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

// T38: integers keep all digits, even through a mount.
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

// A tool without a description can be called but is not listed.
func TestUndescribedTool(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("hidden", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.TextResult("hi"), nil }))
	mux.Tool("shown", mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
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

type line struct {
	Item  string        `json:"item"`
	Count int           `json:"count" jsonschema:"minimum=1,default=3"`
	Wait  time.Duration `json:"wait" jsonschema:"default=1m30s"`
	Parts []line        `json:"parts,omitempty"`
}

// Defaults are filled in at every depth, including in lists, maps and recursive types. A
// null is replaced by the default as well.
func TestFindingU12DefaultsAtEveryDepth(t *testing.T) {
	type order struct {
		First *line           `json:"first,omitempty"`
		Lines []line          `json:"lines,omitempty"`
		Named map[string]line `json:"named,omitempty"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("order", mcp.ToolFunc(func(_ context.Context, in order) (order, error) { return in, nil }, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for args, want := range map[string]string{
			`{}`:                       `{}`,
			`{"first":{"item":"a"}}`:   `{"first":{"item":"a","count":3,"wait":"1m30s"}}`,
			`{"lines":[{"item":"a"}]}`: `{"lines":[{"item":"a","count":3,"wait":"1m30s"}]}`,
			`{"lines":[{"item":"a","count":null,"parts":[{"item":"b"}]}]}`: `{"lines":[{"item":"a","count":3,"wait":"1m30s","parts":[{"item":"b","count":3,"wait":"1m30s"}]}]}`,
			`{"named":{"x":{"item":"a","count":7,"wait":"2h"}}}`:           `{"named":{"x":{"item":"a","count":7,"wait":"2h0m0s"}}}`,
		} {
			got, err := mcp.Call[order](t.Context(), c, "order", json.RawMessage(args))
			if raw, _ := jsonschema.Marshal(got); err != nil || string(raw) != want {
				t.Errorf("%s: got %s, %v; want %s", args, raw, err, want)
			}
		}
		_, err := mcp.Call[order](t.Context(), c, "order", json.RawMessage(`{"lines":[{"item":"a","count":0}]}`))
		if err == nil || !strings.Contains(err.Error(), "/lines/0/count: expected number of at least 1") {
			t.Errorf("got %v", err)
		}
	})
}

// An empty answer to a form is completed with the defaults, whether or not the client fills
// them in.
func TestFindingU12DefaultsOfForms(t *testing.T) {
	type form struct {
		Size string `json:"size" jsonschema:"enum=s,enum=l,default=l"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		f, err := mcp.Elicit[form](ctx, "k", "Which size?")
		return f.Size, err
	}, nil))
	client := &mcptest.Client{Options: mcp.ClientOptions{
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
		},
		AnswerMiddleware: []mcp.Middleware{withoutContent},
	}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got, err := mcp.Call[string](t.Context(), c, "ask", nil); err != nil || got != "l" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// withoutContent removes the content of a client's answers.
func withoutContent(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		res, err := next.ServeMCP(ctx, req)
		if answer, ok := res.(*mcp.ElicitResult); ok {
			answer.Content = nil
		}
		return res, err
	})
}

// A volume is decoded by its UnmarshalJSON method.
type volume string

func (v *volume) UnmarshalJSON(data []byte) error {
	if text := string(data); text != `"quiet"` && text != `"loud"` {
		return errors.New("a volume must be quiet or loud")
	}
	*v = volume(data)
	return nil
}

// A port is encoded as text.
type port int

func (p port) MarshalText() ([]byte, error) { return fmt.Append(nil, int(p)), nil }

func (p *port) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscan(string(text), (*int)(p)); err != nil {
		return fmt.Errorf("%q is not a port", text)
	}
	return nil
}

// If the decoder of a type rejects a value, its error text is reported with the location,
// in arguments, results and forms.
func TestFindingU8DecodersAreQuoted(t *testing.T) {
	type args struct {
		N      int           `json:"n,omitzero"`
		Small  float32       `json:"small,omitzero"`
		Data   []byte        `json:"data,omitzero"`
		Volume volume        `json:"volume,omitzero"`
		Port   port          `json:"port,omitzero"`
		Wait   time.Duration `json:"wait,omitzero"`
		Page   *url.URL      `json:"page,omitzero"`
		Nested []struct {
			Port port `json:"port"`
		} `json:"nested,omitzero"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("take", mcp.ToolFunc(func(context.Context, args) (string, error) { return "taken", nil }, nil))
	mux.Tool("give", mcp.ToolFunc(func(_ context.Context, in struct {
		JSON string `json:"json"`
	}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(in.JSON)}, nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for given, want := range map[string]string{
			`{"n":1.0,"port":"80"}`:          "",
			`{"n":2e0}`:                      "",
			`{"n":1.5}`:                      "/n",
			`{"small":1e300}`:                "/small is out of range",
			`{"data":"%%%"}`:                 "/data: illegal base64 data",
			`{"volume":"mid"}`:               "/volume: a volume must be quiet or loud",
			`{"port":"http"}`:                `/port: "http" is not a port`,
			`{"nested":[{"port":"x"}]}`:      `/nested/0/port: "x" is not a port`,
			`{"wait":"999999999h"}`:          `/wait: "999999999h" is not a duration such as "1m30s"`,
			`{"page":"https://a.example:x"}`: "/page: ",
		} {
			_, err := mcp.Call[string](t.Context(), c, "take", json.RawMessage(given))
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("arguments %s: got %v, want %q", given, err, want)
			}
			if c.Version() < "2025-06-18" {
				continue // without structured content
			}
			_, err = mcp.Call[args](t.Context(), c, "give", map[string]string{"json": given})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("result %s: got %v, want %q", given, err, want)
			}
		}
	})
}

// Tools that share an argument type can describe the arguments individually.
func TestFindingI10DescriptionsOfATool(t *testing.T) {
	type city struct {
		City string `json:"city" jsonschema:"a city"`
	}
	type args struct {
		To    city   `json:"to"`
		Stops []city `json:"stops,omitempty"`
		When  string `json:"when" jsonschema:"format=date"`
	}
	book := func(context.Context, args) (string, error) { return "", nil }
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("shared", mcp.ToolFunc(book, nil))
	mux.Tool("own", mcp.Reshape(mcp.ToolFunc(book, nil), mcp.Shape{Args: map[string]mcp.Arg{
		"when": {Description: "the day, of departure"}, "to.city": {Description: "where to"}, "stops[].city": {Description: "where to stop"},
	}}))
	c := connect(t, mux, nil)
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	own, shared := string(list.Tools[0].InputSchema), string(list.Tools[1].InputSchema)
	for _, want := range []string{
		`"when":{"type":"string","format":"date","description":"the day, of departure"}`,
		`"city":{"type":"string","description":"where to"}`, `"city":{"type":"string","description":"where to stop"}`,
	} {
		if !strings.Contains(own, want) || strings.Contains(shared, want) {
			t.Errorf("want %s in %s, not in %s", want, own, shared)
		}
	}
	wantPanic(t, func() {
		mcp.Reshape(mcp.ToolFunc(book, nil), mcp.Shape{Args: map[string]mcp.Arg{"wen": {Description: "x"}}})
	}, "toolfunc_test.go:", `the tool has no argument "wen"; did you mean "when"?`)
}

// respondingWith returns a server with a tool t that has an output schema and returns
// content.
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

// SCH-02, SCH-07: output that cannot be validated is an error. The error contains the
// result, so that a server with such a schema remains usable.
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

// recursive is a schema with three alternatives that lead to the same member.
const recursive = `{"$ref":"#/$defs/n","$defs":{"n":{"anyOf":[
	{"type":"object","properties":{"k":{"const":1},"a":{"$ref":"#/$defs/n"}},"required":["k"]},
	{"type":"object","properties":{"k":{"const":2},"a":{"$ref":"#/$defs/n"}},"required":["k"]},
	{"type":"object","properties":{"k":{"const":3},"a":{"$ref":"#/$defs/n"}},"required":["k"]}]}}}`

func nestedAnswer(depth int) string {
	return strings.Repeat(`{"k":3,"a":`, depth) + `{"k":3}` + strings.Repeat("}", depth)
}

// Validating output takes a bounded amount of work. Without a limit, a response of a few
// hundred bytes could occupy a core of the client indefinitely.
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

// The same is true for tool arguments and the defaults of a form.
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

// An unreadable form is rejected before it is shown. The defaults of a readable one are
// validated in time linear in their depth.
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
		opts.Elicit = func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked = true
			return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
		}
		res, err := connect(t, h, opts).CallTool(t.Context(), tool("t", ""))
		said := fmt.Sprint(err)
		if err == nil { // user errors fail the tool, not the call
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

// If a server is replaced by one whose tool returns more, clients that listed the old tools
// can still use it. Output that still does not match is an error, and the schema is looked
// up again once.
func TestOutputSchemaChanges(t *testing.T) {
	schema, content, lists := `{"type":"object","properties":{"n":{}},"additionalProperties":false}`, `{"n":1}`, 0
	h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodListTools:
			lists++
			return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(schema)}}}, nil
		case mcp.MethodCallTool:
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(content)}, nil
		}
		return welcoming().ServeMCP(ctx, req)
	})
	for _, version := range bothEras {
		lists = 0
		c := connect(t, h, &mcp.ClientOptions{Version: version})
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for i, step := range []struct {
			schema, content string
			fine            bool
			lists           int
		}{
			{schema, `{"n":1}`, true, 1},
			{`{"type":"object","properties":{"n":{},"m":{}},"additionalProperties":false}`, `{"n":1,"m":2}`, true, 2},
			{`{"type":"object","properties":{"n":{},"m":{}},"additionalProperties":false}`, `{"o":3}`, false, 3},
			{`{"type":"object","properties":{"n":{},"m":{}},"additionalProperties":false}`, `{"o":3}`, false, 3},
		} {
			schema, content = step.schema, step.content
			_, err := c.CallTool(t.Context(), tool("t", ""))
			if _, bad := errors.AsType[*mcp.OutputError](err); bad == step.fine || step.fine && err != nil || lists != step.lists {
				t.Errorf("%s, step %d: %v after %d lists", version, i, err, lists)
			}
		}
		schema = `{"type":"object","properties":{"n":{}},"additionalProperties":false}`
	}
}

// The length of arguments and outputs is limited by the transport alone, for servers and for
// clients that validate outputs.
func TestFindingR22LargeArgumentsAndOutputs(t *testing.T) {
	type large struct {
		S string `json:"s"`
	}
	text := strings.Repeat("x", 17<<20)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("echo", mcp.ToolFunc(func(_ context.Context, in large) (large, error) { return in, nil }, nil))
	c := connectTo(t, mcp.InProcess(mux), nil)
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := mcp.Call[large](t.Context(), c, "echo", large{text}); err != nil || got.S != text {
		t.Errorf("got %d bytes, %.300v", len(got.S), err)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type line struct {
	Item  string        `json:"item"`
	Count int           `json:"count" jsonschema:"minimum=1,default=3"`
	Wait  time.Duration `json:"wait" jsonschema:"default=1m30s"`
	Parts []line        `json:"parts,omitempty"`
}

// Defaults are filled in at every depth, also in lists, maps and recursive types; null means
// the default as well.
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

// A form that is left empty has its defaults, whether or not the client fills them in.
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
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
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

// withoutContent removes what a client fills in.
func withoutContent(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		res, err := next.ServeMCP(ctx, req)
		if answer, ok := res.(*mcp.ElicitResult); ok {
			answer.Content = nil
		}
		return res, err
	})
}

// A volume decodes itself.
type volume string

func (v *volume) UnmarshalJSON(data []byte) error {
	if text := string(data); text != `"quiet"` && text != `"loud"` {
		return errors.New("a volume must be quiet or loud")
	}
	*v = volume(data)
	return nil
}

// A port is written as text.
type port int

func (p port) MarshalText() ([]byte, error) { return fmt.Append(nil, int(p)), nil }

func (p *port) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscan(string(text), (*int)(p)); err != nil {
		return fmt.Errorf("%q is not a port", text)
	}
	return nil
}

// What the decoder of a type refuses is reported in its own words, with the place, in
// arguments, results and forms.
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

// Tools that share a type of arguments describe them in their own words.
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
	mux.Tool("own", mcp.ToolFunc(book, &mcp.Tool{ArgumentDescriptions: map[string]string{
		"when": "the day, of departure", "to.city": "where to", "stops[].city": "where to stop",
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
		mcp.ToolFunc(book, &mcp.Tool{ArgumentDescriptions: map[string]string{"wen": "x"}})
	}, "finding_schema_test.go:", `Tool.ArgumentDescriptions has "wen", which is no argument; did you mean "when"?`)
}

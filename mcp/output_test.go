// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type forecast struct {
	City    string `json:"city"`
	Degrees int    `json:"degrees" jsonschema:"maximum=60"`
}

// The client gets data that matches the inferred schema; the model reads a sentence.
func ExampleWithContent() {
	weather := func(_ context.Context, in struct {
		City string `json:"city"`
	}) (mcp.Output[forecast], error) {
		f := forecast{in.City, 21}
		return mcp.WithContent(f, mcp.Text("Sunny in "+f.City+".")), nil
	}
	mux := mcp.NewMux("weather", "v1.0.0", nil)
	mux.Tool("weather", mcp.ToolFunc(weather, nil))

	res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "weather", Arguments: []byte(`{"city":"Lisbon"}`)}))
	if err != nil {
		fmt.Println(err)
		return
	}
	r := res.(*mcp.CallToolResult)
	fmt.Println(r.Content[0].(*mcp.TextContent).Text)
	fmt.Println(string(r.StructuredContent))
	// Output:
	// Sunny in Lisbon.
	// {"city":"Lisbon","degrees":21}
}

func TestOutput(t *testing.T) {
	mux := mcp.NewMux("weather", "v1.0.0", nil)
	type in struct {
		Degrees int `json:"degrees"`
	}
	mux.Tool("words", mcp.ToolFunc(func(_ context.Context, in in) (mcp.Output[forecast], error) {
		o := mcp.WithContent(forecast{"Lisbon", in.Degrees}, mcp.Text("warm"), &mcp.ImageContent{MIMEType: "image/png", Data: []byte("x")})
		o.Meta = mcp.Meta{"example.com/source": []byte(`"radar"`)}
		return o, nil
	}, nil))
	mux.Tool("none", mcp.ToolFunc(func(context.Context, in) (mcp.Output[*forecast], error) {
		return mcp.Output[*forecast]{Value: &forecast{"Porto", 3}}, nil
	}, nil))
	mux.Tool("empty", mcp.ToolFunc(func(context.Context, in) (mcp.Output[map[string]int], error) {
		return mcp.Output[map[string]int]{Value: map[string]int{"a": 1}, Content: mcp.Contents{}}, nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil || (tool.Name == "words" && !strings.Contains(string(tool.OutputSchema), `"maximum":60`)) {
				t.Errorf("%s has the schema %s, %v", tool.Name, tool.OutputSchema, err)
			}
		}
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "words", Arguments: []byte(`{"degrees":21}`)})
		if err != nil || len(res.Content) != 2 || string(res.StructuredContent) != `{"city":"Lisbon","degrees":21}` || string(res.Meta["example.com/source"]) != `"radar"` {
			t.Errorf("words: %+v, %v", res, err)
		}
		if got, err := mcp.Call[forecast](t.Context(), c, "none", in{}); err != nil || got != (forecast{"Porto", 3}) {
			t.Errorf("none: %+v, %v", got, err)
		}
		res, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "empty", Arguments: []byte(`{"degrees":1}`)})
		if err != nil || len(res.Content) != 0 || string(res.StructuredContent) != `{"a":1}` {
			t.Errorf("empty: %+v, %v", res, err)
		}
		if _, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "words", Arguments: []byte(`{"degrees":61}`)}); mcp.CodeOf(err) != mcp.CodeInternalError {
			t.Errorf("an output that does not fit its schema: %v", err)
		}
	})
}

func TestOutputOfUnstructuredTypes(t *testing.T) {
	for want, register := range map[string]func(){
		"string is not structured": func() { mcp.ToolFunc(func(context.Context, struct{}) (_ mcp.Output[string], _ error) { return }, nil) },
		"*mcp.TextContent is not": func() {
			mcp.ToolFunc(func(context.Context, struct{}) (_ mcp.Output[*mcp.TextContent], _ error) { return }, nil)
		},
		"struct {} is not": func() {
			mcp.ToolFunc(func(context.Context, struct{}) (_ mcp.Output[struct{}], _ error) { return }, nil)
		},
		"*mcp.CallToolResult is no": func() {
			mcp.ToolFunc(func(context.Context, struct{}) (_ mcp.Output[*mcp.CallToolResult], _ error) { return }, nil)
		},
		"return an Output, not a pointer to one": func() {
			mcp.ToolFunc(func(context.Context, struct{}) (_ *mcp.Output[forecast], _ error) { return }, nil)
		},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panicked with %s, want %q", got, want)
				}
			}()
			register()
		}()
	}
}

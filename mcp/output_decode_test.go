// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// TestFindingV5V7CallSaysWhatCame checks what a program learns whose type does not fit what the
// tool returns.
func TestFindingV5V7CallSaysWhatCame(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	returns := func(name string, res *mcp.CallToolResult) {
		mux.Tool(name, mcp.ToolFunc(func(context.Context, none) (*mcp.CallToolResult, error) { return res, nil }, nil))
	}
	returns("sum", &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"sum":5,"new":1}`)})
	returns("text", mcp.TextResult("It is sunny."))
	returns("json", mcp.TextResult(`{"sum":5}`))
	returns("image", &mcp.CallToolResult{Content: mcp.Contents{&mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"}}})
	returns("nothing", &mcp.CallToolResult{})
	returns("list", &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"items":[1]}`)})
	type lower struct {
		Sum int `json:"sum"`
	}
	type upper struct{ Sum int }
	type other struct {
		Total int `json:"total"`
		Sun   int `json:"sun"`
	}
	type open struct {
		Rest map[string]any `json:",inline,embed"`
	}
	conn := mcptest.Connect(t, mux)
	call := func(got any, err error) string {
		if err != nil {
			return "error: " + err.Error()
		}
		return fmt.Sprintf("%+v", got)
	}
	for _, test := range []struct{ got, want string }{
		{call(mcp.Call[lower](t.Context(), conn, "sum", nil)), "{Sum:5}"},
		{call(mcp.Call[lower](t.Context(), conn, "json", nil)), "{Sum:5}"},
		{call(mcp.Call[*lower](t.Context(), conn, "sum", nil)), "&{Sum:5}"},
		{call(mcp.Call[map[string]int](t.Context(), conn, "sum", nil)), "map[new:1 sum:5]"},
		{call(mcp.Call[struct{}](t.Context(), conn, "sum", nil)), "{}"},
		{call(mcp.Call[any](t.Context(), conn, "sum", nil)), "map[new:1 sum:5]"},
		{call(mcp.Call[open](t.Context(), conn, "sum", nil)), "{Rest:map[new:1 sum:5]}"},
		{call(mcp.Call[upper](t.Context(), conn, "sum", nil)), "error: mcp: the output of sum: its member \"sum\" is not the field \"Sum\" of mcp_test.upper: tag the field with `json:\"sum\"`"},
		{call(mcp.Call[other](t.Context(), conn, "sum", nil)), `error: mcp: the output of sum: its members (sum, new) are not those of mcp_test.other (total, sun); did you mean "sun"?`},
		{call(mcp.Call[lower](t.Context(), conn, "text", nil)), `error: mcp: the output of text: it is text, not JSON (It is sunny.): use Call[string]`},
		{call(mcp.Call[lower](t.Context(), conn, "image", nil)), `error: mcp: the output of image: it is content of the type image: use Call[mcp.Contents], or CallTool`},
		{call(mcp.Call[string](t.Context(), conn, "image", nil)), `error: mcp: the output of image: it is content of the type image: use Call[mcp.Contents], or CallTool`},
		{call(mcp.Call[string](t.Context(), conn, "sum", nil)), `error: mcp: the output of sum: it is data, not text ({"sum":5,"new":1}): use Call with a type for it, or CallTool`},
		{call(mcp.Call[string](t.Context(), conn, "text", nil)), "It is sunny."},
		{call(mcp.Call[string](t.Context(), conn, "nothing", nil)), ""},
		{call(mcp.Call[lower](t.Context(), conn, "nothing", nil)), "error: mcp: the output of nothing: it is empty: use Call[string], or CallTool"},
		{call(mcp.Call[[]int](t.Context(), conn, "list", nil)), `error: mcp: the output of list: it is not a []int ({"items":[1]}): the value itself must not be a JSON object`},
	} {
		if test.got != test.want {
			t.Errorf("got  %s\nwant %s", test.got, test.want)
		}
	}
	if res, err := mcp.Call[*mcp.CallToolResult](t.Context(), conn, "sum", nil); err != nil || len(res.StructuredContent) == 0 {
		t.Errorf("got %+v, %v", res, err)
	}
	if res, err := mcp.Call[mcp.Contents](t.Context(), conn, "image", nil); err != nil || len(res) != 1 {
		t.Errorf("got %+v, %v", res, err)
	}
	if out, err := mcp.Call[mcp.Output[lower]](t.Context(), conn, "json", nil); err != nil || out.Value.Sum != 5 || len(out.Content) != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
}

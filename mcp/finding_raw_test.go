// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// Raw JSON of a handler is checked before it goes out. What is not JSON costs the
// response that it is in, never the message around it, and the peer learns which part
// it was.
func TestFindingCH3W3S34(t *testing.T) {
	injection := json.RawMessage(`{}},"error":{"code":1,"message":"x"},"y":{"z":1`)
	structured := func(raw string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("ok")}, StructuredContent: json.RawMessage(raw)}
	}
	withMeta := func(raw string) *mcp.CallToolResult {
		res := mcp.TextResult("ok")
		res.Meta = mcp.Meta{"a": json.RawMessage(raw)}
		return res
	}
	for name, test := range map[string]struct {
		res  *mcp.CallToolResult
		err  error
		want string // a part of the error; "" if it is served
	}{
		"a web page":            {structured("<html>502</html>"), nil, "structuredContent is not JSON"},
		"injected members":      {structured(string(injection)), nil, "structuredContent is not JSON"},
		"an empty value":        {structured(""), nil, "structuredContent is not JSON"},
		"two values":            {structured("{} {}"), nil, "structuredContent is not JSON"},
		"a member twice":        {structured(`{"a":1,"a":2}`), nil, "structuredContent is not JSON"},
		"half a surrogate pair": {structured(`{"a":"\ud83d"}`), nil, "structuredContent is not JSON"},
		"too deep":              {structured(`{"a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`), nil, "structuredContent is not JSON"},
		"meta":                  {withMeta(string(injection)), nil, `_meta["a"] is not JSON`},
		"a null in meta":        {&mcp.CallToolResult{ResultBase: mcp.ResultBase{Meta: mcp.Meta{"a": nil}}, Content: mcp.Contents{mcp.Text("ok")}}, nil, ""},
		"unknown content":       {&mcp.CallToolResult{Content: mcp.Contents{&mcp.UnknownContent{Raw: json.RawMessage(`{}],"z":[{}`)}}}, nil, "unknown content is not JSON"},
		"content of no object":  {&mcp.CallToolResult{Content: mcp.Contents{&mcp.UnknownContent{Raw: json.RawMessage(`7`)}}}, nil, "unknown content is not a JSON object"},
		"the data of an error":  {nil, &mcp.Error{Code: 7, Message: "upstream", Data: injection}, "the data of an error is not JSON; the error: upstream"},
		"a good one":            {structured(`{"a":1}`), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("raw", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
				if test.err != nil {
					return nil, test.err
				}
				return test.res, nil
			}))
			mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
				res, err := c.CallTool(t.Context(), tool("raw", ""))
				if test.want == "" && (err != nil || textOf(res) != "ok") {
					t.Errorf("got %+v, %v", res, err)
				}
				if test.want != "" && (mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %+v, %v; want %s", res, err, test.want)
				}
			})
		})
	}
}

// Params of a notification are a JSON object, or the notification is not sent.
func TestFindingS34Notifications(t *testing.T) {
	var problems []error
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("notify", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		problems = nil
		for _, raw := range []string{`{}},"id":1,"x":{`, `[]`, ``, `"x"`} {
			problems = append(problems, req.Notify(ctx, "example/note", json.RawMessage(raw)))
		}
		return mcp.TextResult("ok"), req.Notify(ctx, "example/note", json.RawMessage(`{"n":1}`))
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "notify", ""); got != "ok" {
			t.Errorf("got %q", got)
		}
		for _, err := range problems {
			if err == nil || errors.Is(err, mcp.ErrNotDelivered) || !strings.Contains(err.Error(), "params of example/note") {
				t.Errorf("got %v", err)
			}
		}
	})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// exchange serves one message as a transport of another module would, and returns the
// notifications and the response.
func exchange(t *testing.T, h mcp.Handler, raw string) (messages []string) {
	t.Helper()
	m, err := transport.ParseMessage([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	req, err := mcp.ParseRequest(&m)
	var res mcp.Result
	if err == nil {
		res, err = mcp.ServeRequest(t.Context(), h, req, func(_ context.Context, method string, params json.RawMessage) error {
			messages = append(messages, string(transport.AppendNotification(nil, method, params)))
			return nil
		})
	}
	return append(messages, string(mcp.AppendResponse(nil, req, res, err)))
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":7}`

// A message is parsed, served and answered with three functions.
func TestServeRequest(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 2, "half")
		return "done", nil
	}, nil))
	mux.Tool("breaks", mcp.ToolFunc(func(context.Context, none) (string, error) { panic("secret") }, nil))
	for _, test := range []struct {
		name, message string
		want          []string // a part of each message
	}{
		{"progress and result", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work",` + modernMeta + `}}`,
			[]string{`"progressToken":7`, `"text":"done"`}},
		{"panic", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"breaks",` + modernMeta + `}}`, []string{`"message":"internal error"`}},
		{"no metadata", `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`, []string{`"id":"x","error":{"code":-32602`}},
		{"no capabilities", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, []string{`clientCapabilities`}},
		{"another version", strings.Replace(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, "2026-07-28", "2025-11-25", 1), []string{`"code":-32022`}},
		{"invalid params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7,` + modernMeta + `}}`, []string{`params.name must be a string`}},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{`"code":-32600`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := exchange(t, mux, test.message)
			if len(got) != len(test.want) {
				t.Fatalf("got %d messages: %s", len(got), got)
			}
			for i, part := range test.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("message %d is %s, want %s", i, got[i], part)
				}
			}
		})
	}
}

// A notification needs no metadata and no function for notifications about it.
func TestServeRequestNotification(t *testing.T) {
	seen := make(chan string, 1)
	h := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		seen <- req.Method
		return nil, nil
	})
	m, err := transport.ParseMessage([]byte(`{"jsonrpc":"2.0","method":"notifications/x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req, err := mcp.ParseRequest(&m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mcp.ServeRequest(t.Context(), h, req, nil); err != nil || <-seen != "notifications/x" {
		t.Error(err)
	}
}

// A result that was encoded is the same after it has been decoded, and can carry metadata.
func TestMarshalResult(t *testing.T) {
	original := &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("hi")}, StructuredContent: json.RawMessage(`{"n":1}`)}
	marked := mcp.WithResultMeta(original, "example.com/cached", true)
	if original.Meta != nil || mcp.ResultMeta(original) != nil {
		t.Error("the original was changed")
	}
	raw, err := mcp.MarshalResult(marked)
	if err != nil {
		t.Fatal(err)
	}
	back, err := mcp.UnmarshalResult(mcp.MethodCallTool, raw)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := mcp.MarshalResult(back)
	var cached bool
	if !mcp.ResultMeta(back).Get("example.com/cached", &cached) || !cached || !bytes.Equal(raw, again) {
		t.Errorf("%s became %s", raw, again)
	}
	for _, res := range []mcp.Result{nil, &mcp.CallToolResult{StructuredContent: json.RawMessage(`{`)}, &mcp.CallToolResult{Content: mcp.Contents{nil}}} {
		if raw, err := mcp.MarshalResult(res); err == nil {
			t.Errorf("%+v was encoded as %s", res, raw)
		}
	}
	if res, err := mcp.UnmarshalResult(mcp.MethodCallTool, json.RawMessage(`[]`)); err == nil {
		t.Errorf("decoded %+v", res)
	}
	wantPanic(t, func() { mcp.WithResultMeta(nil, "k", 1) }, "the result is nil")
}

// The metadata of any type of result can be read and set: also of the types of others.
func TestResultMetaOfCustomResult(t *testing.T) {
	type custom struct {
		mcp.ResultBase
		N int `json:"n"`
	}
	first := mcp.WithResultMeta(&custom{N: 5}, "a", 1)
	second := mcp.WithResultMeta(first, "b", 2).(*custom)
	if len(mcp.ResultMeta(first)) != 1 || len(second.Meta) != 2 || second.N != 5 || mcp.ResultMeta(nil) != nil {
		t.Errorf("first %+v, second %+v", first, second)
	}
}

// A client can ask whether a resource was not found, in every revision and behind a mount.
func TestErrorIsNotExist(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Resource("note://{id}", mcp.ResourceFunc(func(context.Context, none) (string, error) { return "", fs.ErrNotExist }, nil))
	inner.Resource("broken:x", mcp.ResourceFunc(func(context.Context, none) (string, error) {
		return "", mcp.Errorf(mcp.CodeInvalidParams, "no")
	}, nil))
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("in_", inner)
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		for uri, want := range map[string]bool{"mount:in_:note://1": true, "other://1": true, "mount:in_:broken:x": false} {
			_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if got := errors.Is(err, fs.ErrNotExist); got != want || err == nil {
				t.Errorf("%s: %v: errors.Is reports %t", uri, err, got)
			}
		}
		if _, err := c.CallTool(t.Context(), tool("none", "")); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an unknown tool: %v", err)
		}
	})
}

func TestCodeName(t *testing.T) {
	for code, want := range map[int]string{
		mcp.CodeInvalidParams: "invalid params", mcp.CodeTooLarge: "too large", -32002: "resource not found", -32042: "URL elicitation required", 0: "", 7: "", -32000: "",
	} {
		if got := mcp.CodeName(code); got != want {
			t.Errorf("%d is %q, want %q", code, got, want)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// Defaults stand for members that are absent, and are never merged into what a caller
// gave.
func TestFindingCM7(t *testing.T) {
	type args struct {
		Labels map[string]string `json:"labels,omitempty"`
		Page   struct {
			Size  int `json:"size,omitempty"`
			Start int `json:"start,omitempty"`
		} `json:"page,omitzero"`
		Any  any    `json:"any,omitempty"`
		Note string `json:"note,omitempty"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("show", mcp.ToolFunc(func(_ context.Context, in args) (string, error) {
		return fmt.Sprintln(in.Labels, in.Page.Size, in.Page.Start, in.Any, in.Note), nil
	}, &mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{
		"labels":{"type":"object","default":{"env":"prod"}},
		"page":{"type":"object","default":{"size":100,"start":1}},
		"any":true,
		"note":{"type":["string","null"],"default":"none"}}}`)}))
	for given, want := range map[string]string{
		``:                                   "map[env:prod] 100 1 <nil> none",
		`{}`:                                 "map[env:prod] 100 1 <nil> none",
		`{"labels":{"team":"a"}}`:            "map[team:a] 100 1 <nil> none",
		`{"page":{"size":5}}`:                "map[env:prod] 5 0 <nil> none",
		`{"note":null,"any":1}`:              "map[env:prod] 100 1 1 none",
		`{"labels":{},"page":{},"note":"x"}`: "map[] 0 0 <nil> x",
	} {
		res, err := callTool(t, mux, "show", given)
		if err != nil || strings.Join(strings.Fields(textOf(res)), " ") != want {
			t.Errorf("%s: got %+v, %v; want %s", given, res, err, want)
		}
	}
}

// A list of one type of content is content.
func TestFindingCL6(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("texts", mcp.ToolFunc(func(context.Context, none) ([]*mcp.TextContent, error) {
		return []*mcp.TextContent{mcp.Text("a"), mcp.Text("b")}, nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcptest.Conn) {
		res, err := c.CallTool(t.Context(), tool("texts", ""))
		if err != nil || textOf(res) != "a\nb" || res.StructuredContent != nil {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

// Cursors do not tell what they hide, and are good for one caller, list and server.
func TestFindingS18Cursors(t *testing.T) {
	build := func(name string) *mcp.Mux {
		opts := quiet()
		opts.PageSize, opts.StateKeys = 1, [][]byte{slices.Repeat([]byte("k"), 32)}
		mux := mcp.NewMux(name, "v1", opts)
		mux.Use(middleware.Visible(func(_ context.Context, _ middleware.Kind, name string) bool { return !strings.Contains(name, "secret") }))
		for _, name := range []string{"a-secret", "b", "c"} {
			mux.Tool(name, says(name))
			mux.Prompt(name, promptSays(name))
		}
		return mux
	}
	mux := build("m")
	ann := &mcptest.Client{Principal: &mcp.Principal{Subject: "ann"}}
	list := func(h mcp.Handler, who *mcptest.Client, method string, cursor *string) (mcp.Result, error) {
		res, _, err := mcptest.Do(t, h, who.NewRequest(method, &mcp.ListParams{Cursor: cursor}))
		return res, err
	}
	res, err := list(mux, ann, mcp.MethodListTools, nil)
	if err != nil {
		t.Fatal(err)
	}
	cursor := res.(*mcp.ListToolsResult).NextCursor
	plain, _ := base64.RawURLEncoding.DecodeString(*cursor)
	if strings.Contains(*cursor, "secret") || strings.Contains(string(plain), "secret") {
		t.Errorf("the cursor says %q", plain)
	}
	for _, test := range []struct {
		what   string
		h      mcp.Handler
		who    *mcptest.Client
		method string
		ok     bool
	}{
		{"its own list", mux, ann, mcp.MethodListTools, true},
		{"a replica", build("m"), ann, mcp.MethodListTools, true},
		{"another caller", mux, &mcptest.Client{Principal: &mcp.Principal{Subject: "bob"}}, mcp.MethodListTools, false},
		{"nobody", mux, new(mcptest.Client), mcp.MethodListTools, false},
		{"another list", mux, ann, mcp.MethodListPrompts, false},
		{"another server", build("other"), ann, mcp.MethodListTools, false},
	} {
		if _, err := list(test.h, test.who, test.method, cursor); (err == nil) != test.ok {
			t.Errorf("%s: got %v", test.what, err)
		}
	}
}

// What makes a middleware may use the mux, and other muxes.
func TestFindingCM6(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	other := mcp.NewMux("other", "v1", quiet())
	mux.Use(func(next mcp.Handler) mcp.Handler {
		_ = mux.Walk(func(string, string, mcp.Handler) error { return nil })
		mux.Tool("made", says("made"))
		other.Tool("made", says("made"))
		_, _ = callTool(t, other, "made", "")
		return next
	})
	if res, err := callTool(t, mux, "made", ""); err != nil || textOf(res) != "made" {
		t.Errorf("got %+v, %v", res, err)
	}
}

// Templates are compared when one is registered, not at the next request after any
// change.
func TestFindingCL9(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	for _, pattern := range []string{"n://{+path}", "n://x/z/{+path}", "n://x/{+path}", "n://x/y"} {
		mux.Resource(pattern, reads(pattern))
	}
	read := func(uri string) string {
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
		if err != nil {
			return err.Error()
		}
		return res.(*mcp.ReadResourceResult).Contents[0].Text
	}
	for uri, want := range map[string]string{"n://a": "n://{+path}", "n://x/a": "n://x/{+path}", "n://x/y": "n://x/y", "n://x/z/1": "n://x/z/{+path}"} {
		if got := read(uri); got != want {
			t.Errorf("%s: read by %s, want %s", uri, got, want)
		}
	}
	mux.RemoveResource("n://x/{+path}")
	if got := read("n://x/a"); got != "n://{+path}" {
		t.Errorf("after a removal: read by %s", got)
	}
}

// A completion without the name of an argument is refused.
func TestFindingW17Completion(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("p", promptSays("p"))
	mcptest.Run(t, mux, func(t *testing.T, c *mcptest.Conn) {
		for _, params := range []string{`{"ref":{"type":"ref/prompt","name":"p"}}`, `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"value":"x"}}`} {
			_, err := c.Request(t.Context(), mcp.MethodComplete, json.RawMessage(params))
			wantCode(t, err, mcp.CodeInvalidParams)
		}
	})
}

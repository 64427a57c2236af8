// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

func TestPatterns(t *testing.T) {
	for pattern, names := range map[string]map[string]bool{
		"get":         {"get": true, "get_x": false, "": false, "*": false},
		"get_*":       {"get_": true, "get_x": true, "get": false, "forget_x": false},
		"*_x":         {"_x": true, "get_x": true, "get_xy": false},
		"*et*":        {"et": true, "get_x": true, "e_t": false},
		"a*b*c":       {"abc": true, "a1b2c": true, "ac": false, "abbc": true, "acb": false},
		"a*a":         {"a": false, "aa": true, "aba": true},
		"*":           {"": true, "x/y": true},
		"file:///a/*": {"file:///a/b/c": true, "file:///b": false, "file:///a/b?x[]": true},
		"a?b[c]":      {"a?b[c]": true, "axb[c]": false, "a?bc": false},
		"a**b":        {"ab": true, "axb": true},
	} {
		allow := middleware.Allow(mcp.KindTool, pattern)
		deny := middleware.Deny(mcp.KindTool, pattern)
		ok := answering(mcp.TextResult("ok"), nil)
		for name, want := range names {
			for of, h := range map[bool]mcp.Handler{want: allow(ok), !want: deny(ok)} {
				_, _, err := mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: name}))
				if (err == nil) != of {
					t.Errorf("%q of %q: matches is %t, got %v", pattern, name, want, err)
				}
			}
		}
	}
}

// Denied items are not listed, cannot be used under any spelling, and cannot be subscribed
// to.
func TestAllowAndDeny(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Allow(mcp.KindTool, "get_*"), middleware.Deny(mcp.KindTool, "*_secret"), middleware.Deny(mcp.KindResource, "r:hr/*"))
	for _, name := range []string{"get_a", "get_secret", "put_a"} {
		mux.Tool(name, answering(mcp.TextResult(name), nil))
	}
	mux.Mount("in_", saying("get_x"))
	mux.Resource("r:{+path}", mcp.ResourceFunc(func(_ context.Context, in struct {
		Path string `json:"path"`
	}) (string, error) {
		return in.Path, nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for name, want := range map[string]bool{"get_a": true, "get_secret": false, "put_a": false, "in_get_x": false} {
			_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
			if (err == nil) != want {
				t.Errorf("%s: got %v", name, err)
			}
		}
		for uri, want := range map[string]bool{"r:open": true, "r:hr/1": false, "r:%68r/1": false, "r:hr%2F1": false} {
			_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if (err == nil) != want {
				t.Errorf("%s: got %v", uri, err)
			}
		}
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"r:open", "r:hr/1"}}, func(mcp.Change) {})
		if err != nil || len(s.Accepted().ResourceSubscriptions) != 1 {
			t.Errorf("accepted %+v, %v", s, err)
		}
	})
}

// Allow and Deny treat all callers alike, so the remaining items may be cached for all.
func TestAllowKeepsCacheScope(t *testing.T) {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Minute, mcp.CachePublic)})
	mux.Use(middleware.Allow(mcp.KindTool, "a"))
	mux.Tool("a", answering(mcp.TextResult(""), nil))
	res, err := mcptest.Connect(t, mux).ListTools(t.Context(), nil)
	if err != nil || res.CacheScope != mcp.CachePublic {
		t.Errorf("got %+v, %v", res, err)
	}
}

// An empty list in a configuration allows nothing, and denies nothing.
func TestAllowWithoutPatterns(t *testing.T) {
	for name, test := range map[string]struct {
		mw   mcp.Middleware
		want int
	}{"Allow": {middleware.Allow(mcp.KindTool), 0}, "Deny": {middleware.Deny(mcp.KindTool), 1}} {
		mux := mcp.NewMux("m", "v1", nil)
		mux.Use(test.mw)
		mux.Tool("a", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
		c := mcptest.Connect(t, mux)
		res, err := c.ListTools(t.Context(), nil)
		if err != nil || len(res.Tools) != test.want {
			t.Errorf("%s: got %+v, %v", name, res, err)
		}
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"}); (err == nil) != (test.want == 1) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllowPanics(t *testing.T) {
	mustPanic(t, "Deny", func() { middleware.Deny(mcp.KindTool, "a", "") })
	mustPanic(t, "Deny", func() { middleware.Deny("tools", "a") })
}

// Only a part of a mounted server is exposed, selected by the names on that server.
func ExampleAllow() {
	tool := func() mcp.Handler {
		return mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
	}
	files := mcp.NewMux("files", "v1.0.0", nil)
	for _, name := range []string{"get_file", "get_directory", "delete_file"} {
		files.Tool(name, tool())
	}
	mux := mcp.NewMux("gateway", "v1.0.0", nil)
	mux.With(middleware.Allow(mcp.KindTool, "get_*")).Mount("files_", files)

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for tool, err := range conn.Tools(ctx, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(tool.Name)
	}
	_, err = mcp.Call[string](ctx, conn, "files_delete_file", nil)
	fmt.Println(err)
	// Output:
	// files_get_directory
	// files_get_file
	// unknown tool "files_delete_file" (code -32602)
}

// Patterns for resources match every spelling of the URIs that they name, and their schemes
// and hosts may be in upper case.
func TestFindingR23PatternsInOtherSpellings(t *testing.T) {
	for _, test := range []struct{ pattern, matches, other string }{
		{"KBInfo://*", "kbinfo://a", "kbinfo2://a"},
		{"KBInfo://café/{id}", "kbinfo://caf%C3%A9/{id}", "kbinfo://cafe/{id}"},
		{"notes://café", "notes://caf%C3%A9", "notes://cafe"},
		{"https://Example.com", "https://example.com/", "https://example.com/a"},
		{"https://Example.com*", "https://example.com/a", "https://example.org/"},
		{"https://Example.com*", "https://example.com:8080/", "https://example.org/"},
		{"https://Example.com/*", "https://example.com/A", "https://example.org/"},
		{"https://*.Example.com/A*", "https://x.example.com/A/b", "https://x.example.com/a"},
		{"https://*Example*", "https://x.example.com/", "https://x.com/"},
		{"*KBInfo://*", "mount:a_:kbinfo://x", "mount:a_:info://x"},
		{"mount:*:KBInfo://é*", "mount:a_:kbinfo://%C3%A9/x", "mount:a_:kbinfo://e"},
		{"MOUNT:a_:HTTPS://Example.com", "mount:a_:https://example.com/", "mount:b_:https://example.com/"},
		{"notes://*A:B*", "notes://xA:B", "notes://xa:b"},
	} {
		mux := mcp.NewMux("m", "v1", nil)
		mux.Use(middleware.Allow(mcp.KindResource, test.pattern))
		for _, uri := range []string{test.matches, test.other} {
			mux.Resource(uri, mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "", nil }, nil))
		}
		for uri, want := range map[string]bool{test.matches: true, test.other: false} {
			if strings.Contains(uri, "{") {
				continue // it is a template, which is only listed
			}
			_, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
			if (err == nil) != want {
				t.Errorf("%s: reading %s: %v", test.pattern, uri, err)
			}
		}
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodListResourceTemplates, nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, listed := range res.(*mcp.ListResourceTemplatesResult).ResourceTemplates {
			if listed.URITemplate != test.matches {
				t.Errorf("%s: listed %s", test.pattern, listed.URITemplate)
			}
		}
	}
}

// TestFindingV12PatternsThatMatchNothing checks that a misspelled pattern is logged once, with
// the logger of the mux, and that patterns which match are not.
func TestFindingV12PatternsThatMatchNothing(t *testing.T) {
	for _, test := range []struct {
		name string
		mw   mcp.Middleware
		want []string // parts of the warnings
	}{
		{"Allow", middleware.Allow(mcp.KindTool, "get_*", "serach"), []string{`middleware.Allow: the pattern matches no tool that is listed; did you mean \"search\"?`, "pattern=serach"}},
		{"Deny", middleware.Deny(mcp.KindTool, "delete_*"), []string{"middleware.Deny: the pattern matches no tool that is listed", "pattern=delete_*"}},
		{"Allow of prompts", middleware.Allow(mcp.KindPrompt, "sumarize"), []string{"matches no prompt", `did you mean \"summarize\"?`}},
		{"patterns that match", middleware.Allow(mcp.KindTool, "get_*", "search"), nil},
		{"no pattern", middleware.Allow(mcp.KindTool), nil},
		{"resources", middleware.Allow(mcp.KindResource, "notes://work/*"), nil},
	} {
		var log bytes.Buffer
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		text := func(context.Context, struct{}) (string, error) { return "", nil }
		mux.Tool("get_note", mcp.ToolFunc(text, nil))
		mux.Tool("search", mcp.ToolFunc(text, nil))
		mux.Prompt("summarize", mcp.PromptFunc(text, nil))
		mux.Resource("notes://all", mcp.ResourceFunc(text, nil))
		mux.Use(test.mw)
		c := mcptest.Connect(t, mux)
		for range 2 {
			_, err1 := c.ListTools(t.Context(), nil)
			_, err2 := c.ListPrompts(t.Context(), nil)
			_, err3 := c.ListResources(t.Context(), nil)
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != min(len(test.want), 1) {
			t.Errorf("%s: %d warnings: %s", test.name, n, &log)
		}
		for _, want := range test.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: logged %s, want %s", test.name, &log, want)
			}
		}
	}
}

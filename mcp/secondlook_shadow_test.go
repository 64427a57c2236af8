// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// A mount is not reached around, and nothing reaches into it.
func TestSecondLookEncodedAroundAMount(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Resource("notes://{id}", reads("inner"))
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Mount("up_", inner)
	mux.Resource("{+any}", reads("outer"))
	c := mcptest.Connect(t, mux)
	for uri, want := range map[string]string{
		"mount:up_:notes://1": "inner", "mount%3Aup_:notes://1": "", "%6Dount:up_:notes://1": "", "notes://%31": "outer", "x%252Fy": "outer",
	} {
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if (err == nil) != (want != "") || err == nil && res.Contents[0].Text != want {
			t.Errorf("%s: got %+v, %v", uri, res, err)
		}
	}
}

// A handler is not given the values of another one.
func TestSecondLookEncodedSlash(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	var got string
	note := mcp.ResourceFunc(func(_ context.Context, in struct {
		Path string `json:"path"`
	}) (string, error) {
		got = in.Path
		return "note", nil
	}, nil)
	mux.Resource("notes://{+path}", note)
	mux.With(middleware.RequireScopes("hr")).Resource("notes://hr/{+path}", note)
	mux.Resource("ids://{path}", note)
	mux.With(middleware.RequireScopes("hr")).Resource("ids://hr/{path}", note)
	c := (&mcptest.Client{Principal: scoped()}).Connect(t, mux)
	for uri, want := range map[string]string{
		"notes://a%2Fb": "a/b", "notes://hr%2Fb": "", "notes://%68r/b": "", "notes://hr%2fb%252F": "", "notes://hr": "hr",
		"ids://a%2Fb": "a/b", "ids://hr%2Fb": "hr/b", // a slash in a simple variable separates nothing
	} {
		got = ""
		_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: the handler got %q; %v", uri, got, err)
		}
	}
}

// A resource is served by the most specific registration of what it is, however its URI
// is written: a less specific one, with other permissions, would decode it to the same.
func TestSecondLookEncodedAroundTheSpecific(t *testing.T) {
	files := mcp.FileServerFS(fstest.MapFS{
		"open.txt":      {Data: []byte("open")},
		"a b.txt":       {Data: []byte("open")},
		"hr/salary.txt": {Data: []byte("secret")},
		"hr/plan.txt":   {Data: []byte("secret")},
	}, nil)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("file:///{+path}", files)
	protected := mux.With(middleware.RequireScopes("hr"))
	protected.Resource("file:///hr/{+path}", mcp.FileServerFS(fstest.MapFS{"salary.txt": {Data: []byte("secret")}}, nil))
	protected.Resource("file:///hr/plan.txt", reads("secret"))
	c := (&mcptest.Client{Principal: scoped()}).Connect(t, mux)
	for uri, want := range map[string]string{
		"file:///open.txt":              "open",
		"file:///%6Fpen.txt":            "open",
		"file:///a%20b.txt":             "open",
		"file:///hr/salary.txt":         "",
		"file:///%68r/salary.txt":       "",
		"file:///hr%2Fsalary.txt":       "",
		"file:///%68%72%2f%73alary.txt": "",
		"file:///hr/plan%2Etxt":         "",
		"file:///%68r/plan.txt":         "",
	} {
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		switch {
		case want == "" && err == nil:
			t.Errorf("%s: got %q", uri, res.Contents[0].Text)
		case want != "" && (err != nil || !strings.Contains(res.Contents[0].Text, want)):
			t.Errorf("%s: got %+v, %v", uri, res, err)
		}
		if got := accepts(t, c, uri); got != (want != "") {
			t.Errorf("%s: a subscription is accepted: %t", uri, got)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/openapi"
)

// CVE-2026-32871 (FastMCP): an argument that becomes a part of the path leads nowhere else, in
// process or behind a socket, however a server, proxy or router decodes the path.
func TestAdvisoryCVE_2026_32871(t *testing.T) {
	const document = `{"openapi": "3.1.0", "paths": {"/users/{id}/notes/{note}": {"get": {"operationId": "read", "parameters": [
		{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
		{"name": "note", "in": "path", "required": true, "schema": {"type": "string"}}]}}}}`
	reached := ""
	api := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached = r.URL.EscapedPath() + "?" + r.URL.RawQuery })
	server := httptest.NewServer(api)
	defer server.Close()
	for name, opts := range map[string]*openapi.Options{"in process": {Handler: api}, "remote": {BaseURL: server.URL, Client: server.Client()}} {
		a, err := openapi.New([]byte(document), opts)
		if err != nil {
			t.Fatal(err)
		}
		mux := mcp.NewMux("m", "v1", nil)
		if err := a.Register(mux); err != nil {
			t.Fatal(err)
		}
		c := mcptest.Connect(t, mux)
		for _, id := range []string{
			"../../admin", "..", ".", "a/../..", "a/..", "%2e%2e", "%2e%2e%2f%2e%2e%2fadmin", "..%2f..", `..\..\admin`, "a?b=c", "a#b", "a;b", "//evil.example", "",
		} {
			reached = ""
			_, err := mcp.Call[string](t.Context(), c, "read", map[string]any{"id": id, "note": "7"})
			segments := strings.Split(strings.TrimSuffix(reached, "?"), "/")
			switch {
			case reached == "":
				if _, refused := errors.AsType[*mcp.ToolError](err); !refused {
					t.Errorf("%s: %q: nothing was called, and the error is %v", name, id, err)
				}
			case len(segments) != 5 || segments[1] != "users" || segments[3] != "notes" || segments[4] != "7" || leadsUp(segments[2]):
				t.Errorf("%s: %q reached %s", name, id, reached)
			}
		}
	}
}

// Neither do arguments together with what the document has between them, and neither does the
// path of a document.
func TestDotsAroundArguments(t *testing.T) {
	compare := docWith(`"/compare/{base}..{head}/files":{"get":{"operationId":"op"}}`)
	mux := serve(t, compare, &openapi.Options{Handler: echo})
	for args, want := range map[string]string{
		`{"base":"main","head":"a/b"}`:  "GET /compare/main..a%2Fb/files|||",
		`{"base":"a/","head":"/admin"}`: `the argument head must not have a part ".."`,
		`{"base":"a/","head":";x"}`:     `the argument head must not have a part ".."`,
		`{"base":"a","head":"/..;x/b"}`: `the argument head must not have a part ".."`,
	} {
		if got := textOf(call(t, mux, "op", args)); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
	for _, path := range []string{"/%2e%2e/admin", "/a/..%2fadmin", "/a/..;/admin", `/a/..%5Cadmin`} {
		api, err := openapi.New([]byte(docWith(`"`+path+`":{"get":{}}`)), &openapi.Options{Handler: echo})
		if err != nil || len(api.Omitted()) != 1 || api.Omitted()[0].Reason != "the path leaves the API" {
			t.Errorf("%s: got %v, %v", path, api.Omitted(), err)
		}
	}
}

func docWith(paths string) string { return `{"openapi":"3.1.0","paths":{` + paths + `}}` }

// leadsUp reports whether a segment, decoded, has a part that leads to another directory.
func leadsUp(segment string) bool {
	decoded, err := url.PathUnescape(segment)
	parts := strings.FieldsFunc(decoded, func(r rune) bool { return r == '/' || r == '\\' })
	return err != nil || slices.Contains(parts, "..") || slices.Contains(parts, ".")
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/debug"
	"github.com/go-psi/psi/middleware"
)

// registered is the JSON of the page about registered items.
type registered struct {
	Groups []struct {
		Kind  string
		Items []struct {
			Name, Site, Handler string
			Listed              bool
			Middleware          []struct{ Name, Site string }
			Findings            []struct{ Rule string }
		}
	}
	Error string
}

// A plain function is middleware, too.
func plain(next mcp.Handler) mcp.Handler { return next }

// Every registration is shown with its line and the middleware around it, outermost first,
// including on mounted muxes.
func TestRegistrations(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", &mcp.MuxOptions{Logger: quiet})
	inner.Use(middleware.Recover(nil))
	inner.Tool("deep", mcp.ToolFunc(func(context.Context, empty) (string, error) { return "", nil }, nil))
	mux := mcp.NewMux("outer", "v1", &mcp.MuxOptions{Logger: quiet})
	mux.Use(middleware.RequestID(nil), plain)
	mux.With(middleware.Timeout(time.Minute)).Tool("top", mcp.ToolFunc(func(context.Context, empty) (string, error) { return "", nil }, nil))
	mux.With(middleware.Concurrency(4, 4)).Mount("in_", inner)
	mux.Tool("hidden", mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.TextResult("here"), nil }), nil))
	mux.Handle("vendor/x", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return &mcp.EmptyResult{}, nil }))
	s := serve(t, mux, nil)
	s.page("") // the middleware is wrapped by the first request
	shown := map[string]string{}
	for _, g := range decode[registered](s, "?view=registered&format=json").Groups {
		for _, it := range g.Items {
			var names []string
			for _, mw := range it.Middleware {
				names = append(names, mw.Name)
			}
			listed := ""
			if it.Listed {
				listed = " listed"
			}
			if !strings.HasPrefix(it.Site, "registered_test.go:") {
				t.Errorf("%s at %s", it.Name, it.Site)
			}
			shown[g.Kind+" "+it.Name+listed] = strings.Join(names, " ")
		}
	}
	use := "middleware.RequestID debug_test.plain"
	want := map[string]string{
		"tool top listed":     use + " middleware.Timeout",
		"tool in_deep listed": use + " middleware.Concurrency middleware.Recover",
		"tool hidden":         use,
		"method vendor/x":     use,
		"mount in_":           use + " middleware.Concurrency",
	}
	for name, around := range want {
		if got, ok := shown[name]; !ok || got != around {
			t.Errorf("%s: %t, in %q, want %q", name, ok, got, around)
		}
	}
	if len(shown) != len(want) {
		t.Errorf("%q", shown)
	}
	r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"hidden"}})
	wantIn(t, string(r.Result), "here")
}

// Findings of the linter are shown.
func TestFindings(t *testing.T) {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
	echo(mux, `{"type":"object","properties":{"a":{"type":["string","null"]}},"anyOf":[{"required":["a"]}]}`)
	s := serve(t, mux, nil)
	items := decode[registered](s, "?view=registered&format=json").Groups[0].Items
	if len(items[0].Findings) == 0 {
		t.Errorf("%+v", items)
	}
	wantIn(t, s.page("?view=item&kind=tool&name=echo"), "Findings", "/inputSchema")
}

// Any handler can be shown, and its calls from the page are recorded.
func TestAnyHandler(t *testing.T) {
	mux := newMux(t)
	s := serve(t, mcp.HandlerFunc(mux.ServeMCP), nil)
	page := s.page("?view=registered")
	wantIn(t, page, "add", "greet")
	if column := "<th>Registered</th>"; strings.Contains(page, column) || !strings.Contains(serve(t, mux, nil).page("?view=registered"), column) {
		t.Error("the column of sites is not only there if they are known")
	}
	s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"fail"}})
	o := decode[overview](s, "?format=json")
	if !slices.ContainsFunc(o.Recent, func(r shownRequest) bool { return r.Name == "fail" && r.Outcome == "isError" }) {
		t.Errorf("%+v", o.Recent)
	}
}

// A server that does not answer is reported as such.
func TestBrokenServer(t *testing.T) {
	s := serve(t, mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, errors.New("out of order") }), nil)
	wantIn(t, s.page(""), "The server does not answer", "out of order")
	if res, body := s.do(s.request(http.MethodGet, "?view=registered", nil)); res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "out of order") {
		t.Error(res.Status, body)
	}
}

// A handler that panics is recorded as such.
func TestPanic(t *testing.T) {
	mux := newMux(t)
	mux.Tool("panic", mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic("no") }), &mcp.Tool{}))
	s := serve(t, mux, &debug.Options{})
	r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"panic"}})
	if r.State != "error" || r.Code != mcp.CodeInternalError {
		t.Errorf("%+v", r)
	}
	wantIn(t, s.page(""), `<span class="tag panic">panic</span>`)
}

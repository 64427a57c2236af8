// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
)

// sink is a ResponseWriter that discards everything.
type sink struct {
	header http.Header
	status int
	n      int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { s.n += len(p); return len(p), nil }
func (s *sink) Flush()                      {}

// Deadlines are accepted, as by net/http's ResponseWriter.
func (s *sink) SetReadDeadline(time.Time) error  { return nil }
func (s *sink) SetWriteDeadline(time.Time) error { return nil }

// caller serves one request repeatedly, without sockets.
type caller struct {
	h    http.Handler
	r    *http.Request
	body *bytes.Reader
	raw  []byte
	w    *sink
}

func newCaller(t testing.TB, h http.Handler, body string, hd header) *caller {
	t.Helper()
	c := &caller{h: h, raw: []byte(body), body: bytes.NewReader(nil), w: &sink{header: http.Header{}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range hd {
		r.Header.Set(k, v)
	}
	r.ContentLength = int64(len(body))
	r.Body = io.NopCloser(c.body)
	c.r = r
	return c
}

func (c *caller) call() {
	c.body.Reset(c.raw)
	clear(c.w.header)
	c.h.ServeHTTP(c.w, c.r)
}

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sum struct {
	Sum int `json:"sum"`
}

func adder() *mcp.Mux {
	mux := mcp.NewMux("calculator", "v1", nil)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in pair) (sum, error) { return sum{in.A + in.B}, nil }, nil))
	return mux
}

func addCall() (string, header) {
	return modern("tools/call", "add", `"name":"add","arguments":{"a":1,"b":2}`)
}

func BenchmarkModernJSON(b *testing.B) {
	body, h := addCall()
	c := newCaller(b, newHandler(b, adder(), nil), body, h)
	b.ReportAllocs()
	for b.Loop() {
		c.call()
	}
}

func BenchmarkModernStream(b *testing.B) {
	body, h := addCall()
	c := newCaller(b, newHandler(b, adder(), nil), body, with(h, header{"Accept": "text/event-stream"}))
	b.ReportAllocs()
	for b.Loop() {
		c.call()
	}
}

// legacyCall returns a call in a legacy session.
func legacyCall(t testing.TB, h http.Handler, accept string) *caller {
	t.Helper()
	w := httptest.NewRecorder()
	open := newCaller(t, h, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+mcp.LegacyVersions()[0]+
		`","capabilities":{},"clientInfo":{"name":"c","version":"v1"}}}`, nil)
	open.body.Reset(open.raw)
	h.ServeHTTP(w, open.r)
	return newCaller(t, h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`,
		header{"Mcp-Session-Id": w.Header().Get("Mcp-Session-Id"), "Accept": accept})
}

func BenchmarkLegacyJSON(b *testing.B) {
	c := legacyCall(b, newHandler(b, adder(), nil), "application/json, text/event-stream")
	b.ReportAllocs()
	for b.Loop() {
		c.call()
	}
}

func BenchmarkLegacyStream(b *testing.B) {
	c := legacyCall(b, newHandler(b, adder(), nil), "text/event-stream")
	b.ReportAllocs()
	for b.Loop() {
		c.call()
	}
}

// The allocation budgets of an HTTP request without sockets. They equal the current numbers,
// so that any increase is noticed.
func TestAllocations(t *testing.T) {
	type budget struct{ modern, legacy float64 }
	body, h := addCall()
	for accept, budget := range map[string]budget{"application/json, text/event-stream": {20, 22}, "text/event-stream": {25, 27}} {
		handler := newHandler(t, adder(), nil)
		for era, test := range map[string]struct {
			*caller
			budget float64
		}{
			"modern": {newCaller(t, handler, body, with(h, header{"Accept": accept})), budget.modern},
			"legacy": {legacyCall(t, handler, accept), budget.legacy},
		} {
			test.call()
			if test.w.status != http.StatusOK {
				t.Fatalf("status %d", test.w.status)
			}
			if n := testing.AllocsPerRun(200, test.call); n > test.budget && !raceEnabled {
				t.Errorf("a %s request that accepts %s takes %v allocations, the budget is %v", era, accept, n, test.budget)
			}
		}
	}
}

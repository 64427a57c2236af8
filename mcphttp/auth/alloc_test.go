// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/middleware"
)

// caller serves one request repeatedly, without sockets.
type caller struct {
	h    http.Handler
	r    *http.Request
	body *strings.Reader
	raw  string
	w    *sink
}

func newCaller(h http.Handler, r *http.Request) *caller {
	raw := must(io.ReadAll(r.Body))
	c := &caller{h: h, r: r, raw: string(raw), body: strings.NewReader(""), w: &sink{header: http.Header{}}}
	r.Body = io.NopCloser(c.body)
	return c
}

func (c *caller) call() {
	c.body.Reset(c.raw)
	clear(c.w.header)
	c.h.ServeHTTP(c.w, c.r)
}

// measure returns the number of allocations of a call that must succeed.
func measure(tb testing.TB, h http.Handler, r *http.Request) float64 {
	tb.Helper()
	c := newCaller(h, r)
	if c.call(); c.w.status != http.StatusOK {
		tb.Fatalf("status %d", c.w.status)
	}
	return testing.AllocsPerRun(200, c.call)
}

// A call through all middleware that protects a server makes at most 12 allocations, 5 of
// them in this package.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	tok := token(nil)
	hello := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)
	user := func() *http.Request {
		r := modern("whoami")
		r.Header.Set("Authorization", "Bearer "+tok)
		return r
	}
	require := auth.Require(newJWT(auth.JWTOptions{}), &auth.Options{Metadata: &auth.Metadata{Resource: resource}, Scopes: []string{"files:read"}, Logger: quiet})
	plain := mcp.NewMux("plain", "v1", nil)
	plain.Tool("whoami", hello)
	full := mcp.NewMux("full", "v1", nil)
	full.Use(
		middleware.Logger(slog.New(slog.NewTextHandler(&sink{}, nil))),
		middleware.Metrics(discard{}, nil),
		middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(1_000_000, time.Second, nil)),
		middleware.RequireScopes("files:read"),
	)
	full.Tool("whoami", hello)
	without := measure(t, handler(plain), user())
	verified := measure(t, require(handler(plain)), user()) - without
	with := measure(t, require(handler(full)), user()) - without
	t.Logf("%v without, %v more with verification, %v with everything", without, verified, with)
	if verified > 5 {
		t.Errorf("verification needs %v allocations, the budget is 5", verified)
	}
	if with > 12 {
		t.Errorf("everything needs %v allocations, the budget is 12", with)
	}
}

func BenchmarkVerify(b *testing.B) {
	tok := token(nil)
	for name, age := range map[string]time.Duration{"cached": time.Hour, "signature": -1} {
		b.Run(name, func(b *testing.B) {
			j := auth.CacheFor(newJWT(auth.JWTOptions{}), age)
			r := bearing(tok)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := j.Verify(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// discard is a Meter that discards measurements.
type discard struct{}

func (discard) Count(context.Context, string, []middleware.Label, uint64)    {}
func (discard) Gauge(context.Context, string, []middleware.Label, int64)     {}
func (discard) Observe(context.Context, string, []middleware.Label, float64) {}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

// guarded returns a mux with middleware and a typed tool that adds two integers.
func guarded(mw ...mcp.Middleware) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(mw...)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil }, nil))
	return mux
}

// core is the internal API used by the transports of this module.
var core = mcp.Internal(seam.Key{})

// serveBytes serves one message as a transport would.
func serveBytes(tb testing.TB, h mcp.Handler, dst, message []byte) []byte {
	m, err := transport.ParseMessage(message)
	if err != nil {
		tb.Fatal(err)
	}
	req, err := core.NewRequest(&m)
	if err != nil {
		tb.Fatal(err)
	}
	req.Principal = &mcp.Principal{Issuer: "issuer", Subject: "subject", Scopes: []string{"a"}}
	res, err := core.Serve(tb.Context(), h, req, nil, nil)
	return mcp.AppendResponse(dst, req, res, err)
}

var addition = []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},"_meta":{"` +
	mcp.MetaProtocolVersion + `":"` + mcp.LatestVersion + `","` + mcp.MetaClientCapabilities + `":{}}}}`)

func limiter() mcp.Middleware {
	return middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(1e9, time.Second, nil))
}

// nowhere returns a slog handler that formats records and discards them.
func nowhere() slog.Handler {
	return slog.NewTextHandler(io.Discard, nil) //nolint:sloglint // the handler that it wants does nothing
}

func to(h slog.Handler) mcp.Middleware { return middleware.Logger(slog.New(h)) }

// The allocations of each middleware stay within budgets. The budgets are measured values,
// to prevent growth; the goal for the first is 6.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	allocs := func(mw ...mcp.Middleware) float64 {
		mux := guarded(mw...)
		dst := serveBytes(t, mux, nil, addition)
		return testing.AllocsPerRun(200, func() { dst = serveBytes(t, mux, dst[:0], addition) })
	}
	alone := allocs()
	for _, test := range []struct {
		name   string
		mw     []mcp.Middleware
		budget float64
	}{
		{"Recover, Logger(discard), RateLimit", []mcp.Middleware{middleware.Recover(nil), to(slog.DiscardHandler), limiter()}, 1},
		{"Recover, Logger(text to io.Discard), RateLimit", []mcp.Middleware{middleware.Recover(nil), to(nowhere()), limiter()}, 2},
		{"Concurrency", []mcp.Middleware{middleware.Concurrency(10, 10)}, 0},
		{"Timeout", []mcp.Middleware{middleware.Timeout(time.Minute)}, 4},
		{"MaxResult", []mcp.Middleware{middleware.MaxResult(1 << 20)}, 0},
		{"RequireScopes", []mcp.Middleware{middleware.RequireScopes("a")}, 0},
		{"RequestID", []mcp.Middleware{middleware.RequestID(nil)}, 3},
		{"Metrics", []mcp.Middleware{middleware.Metrics(discard{}, nil)}, 3},
	} {
		got := allocs(test.mw...) - alone
		t.Logf("%s: %v allocations", test.name, got)
		if got > test.budget {
			t.Errorf("%s: %v allocations are over the budget of %v", test.name, got, test.budget)
		}
	}
}

func BenchmarkMiddleware(b *testing.B) {
	for _, test := range []struct {
		name string
		mw   []mcp.Middleware
	}{
		{"alone", nil},
		{"bar", []mcp.Middleware{middleware.Recover(nil), to(slog.DiscardHandler), limiter()}},
		{"text", []mcp.Middleware{middleware.Recover(nil), to(nowhere()), limiter()}},
		{"metrics", []mcp.Middleware{middleware.Metrics(discard{}, nil)}},
		{"maxresult", []mcp.Middleware{middleware.MaxResult(1 << 20)}},
	} {
		b.Run(test.name, func(b *testing.B) {
			mux := guarded(test.mw...)
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = serveBytes(b, mux, dst[:0], addition)
			}
		})
	}
}

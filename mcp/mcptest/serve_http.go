// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// serveHTTP serves on a loopback port, to a client that accepts these types.
func serveHTTP(accept string) server {
	return func(tb testing.TB, cl *Client, h mcp.Handler) wire {
		tb.Helper()
		e := mcphttp.NewHandler(h, &mcphttp.Options{Logger: logger(tb)})
		return newHTTPWire(cl, serveLoopback(tb, e, authenticated(cl.Principal, e)), accept)
	}
}

// endpoint is what serves MCP over HTTP.
type endpoint interface {
	http.Handler
	Shutdown(ctx context.Context) error
}

// serveLoopback serves an endpoint, behind the handler around it, on a loopback port
// until the test has ended.
func serveLoopback(tb testing.TB, e endpoint, around http.Handler) (url string) {
	tb.Helper()
	s := httptest.NewServer(around)
	tb.Cleanup(func() {
		defer s.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), closeTimeout)
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			tb.Errorf("mcptest: the HTTP server did not come to its end: %v", err)
		}
	})
	return s.URL
}

// authenticated stands for the middleware that authenticates callers.
func authenticated(p *mcp.Principal, next http.Handler) http.Handler {
	if p == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, mcphttp.WithPrincipal(r, p))
	})
}

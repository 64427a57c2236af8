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
		endpoint := mcphttp.NewHandler(h, &mcphttp.Options{Logger: logger(tb)})
		s := httptest.NewServer(authenticated(cl.Principal, endpoint))
		tb.Cleanup(func() {
			defer s.Close()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), closeTimeout)
			defer cancel()
			if err := endpoint.Shutdown(ctx); err != nil {
				tb.Errorf("mcptest: the HTTP server did not come to its end: %v", err)
			}
		})
		return newHTTPWire(cl, s.URL, accept)
	}
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

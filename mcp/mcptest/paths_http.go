// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"net/http"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

const typeStream = "text/event-stream"

// serveHTTP serves streamable HTTP to a client that accepts only the given content type, or
// both types if it is empty.
func serveHTTP(accept string) func(tb testing.TB, cl *Client, h mcp.Handler) transport.Transport {
	return func(tb testing.TB, cl *Client, h mcp.Handler) transport.Transport {
		url, opts := onLoopback(tb, cl, mcphttp.NewHandler(h, &mcphttp.Options{Logger: logger(tb)}), accept)
		return mcphttp.NewTransport(url, opts)
	}
}

type endpoint interface {
	http.Handler
	Shutdown(ctx context.Context) error
}

// onLoopback serves an endpoint on a loopback port until the test ends. It returns the URL
// and the options of the client.
func onLoopback(tb testing.TB, cl *Client, e endpoint, accept string) (url string, opts *mcphttp.TransportOptions) {
	base := &http.Transport{}
	tb.Cleanup(base.CloseIdleConnections) // runs after the server has been closed
	url = Serve(tb, authenticate(cl.Principal, e))
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), closeTimeout)
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			tb.Errorf("mcptest: the HTTP server did not come to its end: %v", err)
		}
	})
	client := &http.Client{Transport: &checkedHTTP{tb, base, accept}}
	return url, &mcphttp.TransportOptions{Client: client, Header: cl.Header, Logger: logger(tb)}
}

// authenticate replaces the middleware that authenticates callers.
func authenticate(p *mcp.Principal, next http.Handler) http.Handler {
	if p == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, mcphttp.WithPrincipal(r, p))
	})
}

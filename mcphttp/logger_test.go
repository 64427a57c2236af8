// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// TestFindingV12OneLogger checks that a server needs to be given its logger once: endpoints use
// that of the mux, unless they have one of their own.
func TestFindingV12OneLogger(t *testing.T) {
	var log, own logged
	logger := func(w io.Writer) *slog.Logger {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: logger(&log)})
	pass := func(next mcp.Handler) mcp.Handler { return next }
	rebinding := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://evil.example/mcp", strings.NewReader("{}"))
	refuse := func(h http.Handler) func() {
		return func() {
			ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})
			h.ServeHTTP(httptest.NewRecorder(), rebinding.WithContext(ctx))
		}
	}
	for _, test := range []struct {
		name string
		do   func()
		want *logged
	}{
		{"NewHandler", refuse(mcphttp.NewHandler(mux, nil)), &log},
		{"NewHandler of a Chain", refuse(mcphttp.NewHandler(mcp.Chain(mux, pass), &mcphttp.Options{})), &log},
		{"NewHandler with a logger", refuse(mcphttp.NewHandler(mux, &mcphttp.Options{Logger: logger(&own)})), &own},
		{"NewSSEHandler", refuse(mcphttp.NewSSEHandler(mux, nil)), &log},
		{"NewRouter", refuse(mcphttp.NewRouter(mux, nil)), &log},
		{"Serve", func() {
			_ = mcpstdio.Serve(t.Context(), mux, &mcpstdio.Options{In: strings.NewReader("nonsense\n"), Out: io.Discard})
		}, &log},
	} {
		before := test.want.String()
		test.do()
		if test.want.String() == before {
			t.Errorf("%s: nothing was logged to the logger", test.name)
		}
	}
}

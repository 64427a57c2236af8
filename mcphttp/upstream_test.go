// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
)

// A server behind a proxy is replaced: meanwhile the proxy answers with a page, and then a
// new server runs that does not know the sessions of the old one. The Upstream notices both,
// and its listener is told what changed.
func TestUpstreamBehindAProxy(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		t.Run(version, func(t *testing.T) {
			var behind atomic.Pointer[http.Handler]
			be := func(h http.Handler) { behind.Store(&h) }
			serve := func(tool string) *mcphttp.Handler {
				mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
				mux.Tool(tool, mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return tool, nil }, nil))
				h := mcphttp.NewHandler(mux, nil)
				t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
				be(h)
				return h
			}
			old := serve("old")
			url := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*behind.Load()).ServeHTTP(w, r) }))

			quiet := slog.New(slog.DiscardHandler)
			client := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: version, Logger: quiet})
			up := client.Maintain(t.Context(), mcphttp.NewTransport(url, nil), &mcp.UpstreamOptions{
				MinDelay: 5 * time.Millisecond, MaxDelay: 20 * time.Millisecond, Wait: 10 * time.Second,
			})
			t.Cleanup(func() { _ = up.Close() })
			changes := make(chan mcp.Change, 1000)
			if _, err := up.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { changes <- c }); err != nil {
				t.Fatal(err)
			}
			if got, err := callUpstream(t, up, "old"); got != "old" {
				t.Fatalf("got %q, %v", got, err)
			}

			be(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusBadGateway)
				fmt.Fprint(w, "<h1>Bad gateway</h1>")
			}))
			if err := old.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if got, err := callUpstream(t, up, "old"); err == nil {
				t.Errorf("a web page was taken for %q", got)
			}
			serve("new")
			<-changes
			if got, err := callUpstream(t, up, "new"); got != "new" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func callUpstream(t *testing.T, up *mcp.Upstream, tool string) (string, error) {
	t.Helper()
	conn, err := up.Conn(t.Context())
	if err != nil {
		return "", err
	}
	return mcp.Call[string](t.Context(), conn, tool, nil)
}

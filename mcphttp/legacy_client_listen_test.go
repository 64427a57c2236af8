// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// TestFindingV6AcceptedIsWhatCanArrive subscribes at servers of older revisions with and without
// a stream for messages of their own.
func TestFindingV6AcceptedIsWhatCanArrive(t *testing.T) {
	everything := mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: []string{"test://doc"}}
	onlyPOST := func(h http.Handler) http.Handler {
		m := http.NewServeMux()
		m.Handle("POST /mcp", h) // as most people write it
		m.Handle("DELETE /mcp", h)
		return m
	}
	for _, test := range []struct {
		name   string
		opts   *mcphttp.Options
		around func(http.Handler) http.Handler
		warns  bool
	}{
		{"a stream", &mcphttp.Options{Heartbeat: -1}, func(h http.Handler) http.Handler { return h }, false},
		{"no route for GET", &mcphttp.Options{Heartbeat: -1}, onlyPOST, true},
		{"no sessions", stateless, func(h http.Handler) http.Handler { return h }, true},
	} {
		for _, version := range []string{"2025-03-26", "2025-11-25"} {
			bubble(t, test.name+" "+version, func(t *testing.T) {
				s := serve(t, test.around(newHandler(t, tools(), test.opts)))
				var log bytes.Buffer
				c, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: version, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}).
					Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
				if err != nil {
					t.Fatal(err)
				}
				if log.Len() > 0 {
					t.Errorf("before anybody has subscribed, it logged %s", &log)
				}
				for range 2 {
					sub, err := c.Listen(t.Context(), everything, func(mcp.Change) {})
					if err != nil {
						t.Fatal(err)
					}
					if got := sub.Accepted(); got.ToolsListChanged == test.warns || (len(got.ResourceSubscriptions) == 0) != test.warns {
						t.Errorf("accepted is %+v", got)
					}
				}
				if _, err := c.Subscribe(t.Context(), "test://doc", func(string) {}); (err != nil) != test.warns {
					t.Errorf("Subscribe returned %v", err)
				}
				if n := strings.Count(log.String(), "it has no stream"); n != map[bool]int{true: 1}[test.warns] {
					t.Errorf("it was logged %d times: %s", n, &log)
				}
				_ = c.Close()
				s.close()
			})
		}
	}
}

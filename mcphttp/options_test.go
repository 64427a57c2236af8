// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A negative option means no limit, or disables the feature.
func TestNegativeOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newHandler(t, tools(), &mcphttp.Options{
			MaxBody: -1, Heartbeat: -1, WriteTimeout: -1, BodyTimeout: -1, Logger: quiet, Sessions: mcphttp.SessionOptions{Idle: -1, Max: -1, MaxPerCaller: -1, KeepAlive: -1, AskTimeout: -1, Replay: -1},
		}))
		legacy := s.open(mcp.LegacyVersions()[0])
		<-time.After(30 * 24 * time.Hour)
		if got := whole(t, s.post(call(1, "hello")+strings.Repeat(" ", 17<<20), legacy)); got.status != http.StatusOK {
			t.Errorf("after a month: %d %s", got.status, got.body)
		}
		body, h := callModern("steps")
		if got := whole(t, s.post(body, with(h, header{"Accept": "text/event-stream"}))); got.status != http.StatusOK {
			t.Errorf("a stream: %d %s", got.status, got.body)
		}
		opts := s.options(&mcphttp.TransportOptions{MaxMessage: -1, Logger: quiet})
		conn, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", opts))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"}); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
		s.close()
	})
}

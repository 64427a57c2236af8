// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// T63: a transport can be wrapped, and loses nothing by it; every message is seen,
// secrets are not.
func TestLogTransport(t *testing.T) {
	for _, version := range bothEras {
		var log lockedBuffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c := connectTo(t, transport.WithLogging(memory(t, welcoming()), logger), &mcp.ClientOptions{Version: version, Elicit: answering})
		if got, err := mcp.Call[string](t.Context(), c, "greet", map[string]any{}); err != nil || got != "Ada Lovelace" {
			t.Errorf("%s: %q, %v", version, got, err)
		}
		for _, want := range []string{"mcp: sent", "mcp: answered", "tools/call", "duration=", "Ada Lovelace"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log lacks %q:\n%s", version, want, log.String())
			}
		}
		if version == "2026-07-28" && !strings.Contains(log.String(), "(redacted)") {
			t.Errorf("the state stands in the log:\n%s", log.String())
		}
	}
}

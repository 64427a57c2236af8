// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A slog level is sent as the highest level of MCP that is not above it. Those that slog
// does not have lie between and above its own, as far apart as these are.
func TestLogLevelBounds(t *testing.T) {
	for level, want := range map[slog.Level]mcp.LoggingLevel{
		-8: "debug", slog.LevelDebug: "debug", slog.LevelInfo - 1: "debug", slog.LevelInfo: "info", 1: "info", 2: "notice", slog.LevelWarn - 1: "notice",
		slog.LevelWarn: "warning", slog.LevelError - 1: "warning", slog.LevelError: "error", 11: "error", 12: "critical", 15: "critical", 16: "alert",
		19: "alert", 20: "emergency", 1000: "emergency",
	} {
		for _, version := range bothEras {
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
				mcp.ClientLogger(ctx).Log(ctx, level, "x")
				return "", nil
			}, nil))
			got := make(chan mcp.LoggingLevel, 8)
			c := connect(t, mux, &mcp.ClientOptions{Version: version, LogLevel: mcp.LoggingLevelDebug, Log: func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) { got <- p.Level }})
			mustCall(t, c, "log", "")
			_ = c.Ping(t.Context())
			if level < slog.LevelDebug {
				continue // it may be left out
			}
			if l := <-got; l != want {
				t.Errorf("%s: level %d is sent as %s, want %s", version, int(level), l, want)
			}
			if own, ok := want.Level(); !ok || own > level {
				t.Errorf("%s has the level %d", want, own)
			}
		}
	}
	if _, ok := mcp.LoggingLevel("trace").Level(); ok {
		t.Error("there is a level trace")
	}
}

// A client gets the messages of the level that it wants and above, and those of a level that
// it does not know. If it does not want a level, it gets what the server sends.
func TestLogLevelOfClient(t *testing.T) {
	for wanted, want := range map[mcp.LoggingLevel]string{
		"": "[debug info warning verbose emergency]", "debug": "[debug info warning verbose emergency]",
		"warning": "[warning verbose emergency]", "emergency": "[verbose emergency]",
	} {
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			for _, level := range []mcp.LoggingLevel{"debug", "info", "warning", "verbose", "emergency"} {
				_ = req.Notify(ctx, mcp.NotificationMessage, &mcp.LoggingMessageParams{Level: level, Data: "x"})
			}
			return hello().ServeMCP(ctx, req)
		})
		var got []mcp.LoggingLevel
		last := make(chan bool)
		c := connectTo(t, mcp.InProcess(h), &mcp.ClientOptions{LogLevel: wanted, Log: func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) {
			if got = append(got, p.Level); p.Level == mcp.LoggingLevelEmergency {
				last <- true
			}
		}})
		<-last // of connecting
		got = nil
		mustCall(t, c, "hello", "")
		if <-last; fmt.Sprint(got) != want {
			t.Errorf("from %q on: got %v, want %s", wanted, got, want)
		}
	}
}

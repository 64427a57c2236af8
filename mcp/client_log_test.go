// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// The function of a call gets all of its log messages, from the level on that the call wants,
// before the call returns.
func TestWithLog(t *testing.T) {
	const all = 50
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		for n := range all {
			mcp.ClientLogger(ctx).Debug(fmt.Sprint("detail ", n))
			mcp.ClientLogger(ctx).Warn(fmt.Sprint("warning ", n))
		}
		return "", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for _, test := range []struct {
			level mcp.LoggingLevel
			each  []string
		}{
			{mcp.LoggingLevelError, nil},
			{mcp.LoggingLevelWarning, []string{"warning"}},
			{mcp.LoggingLevelDebug, []string{"detail", "warning"}},
			{mcp.LoggingLevelWarning, []string{"warning"}}, // a session is asked for details since the call before
		} {
			var got, want []string
			for n := range all {
				for _, text := range test.each {
					want = append(want, fmt.Sprint(text, " ", n))
				}
			}
			ctx := mcp.WithLog(t.Context(), test.level, func(p *mcp.LoggingMessageParams) { got = append(got, textOfLog(p)) })
			if _, err := c.CallTool(ctx, tool("talk", "")); err != nil || !slices.Equal(got, want) {
				t.Errorf("from the level %s on: got %q, want %q; %v", test.level, got, want, err)
			}
		}
	})
}

// textOfLog returns the message of a record of a ClientLogger.
func textOfLog(p *mcp.LoggingMessageParams) string {
	data, _ := p.Data.(map[string]any)
	text, _ := data["msg"].(string)
	return text
}

// The function of a call is called instead of that of the client, at whose level it is called
// if the call has none. A call without a function has that of the client.
func TestWithLogInsteadOfOption(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, in struct{ Say string }) (string, error) {
		mcp.ClientLogger(ctx).Debug("detail")
		mcp.ClientLogger(ctx).Info(in.Say)
		return "", nil
	}, nil))
	for _, version := range everyVersion() {
		t.Run("version "+version, func(t *testing.T) {
			general := make(chan string, 10)
			c := connect(t, mux, &mcp.ClientOptions{
				Version: version, LogLevel: mcp.LoggingLevelInfo,
				Log: func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) { general <- textOfLog(p) },
			})
			var own []string
			ctx := mcp.WithLog(t.Context(), "", func(p *mcp.LoggingMessageParams) { own = append(own, textOfLog(p)) })
			for _, call := range []struct {
				ctx context.Context
				say string
			}{{ctx, "one"}, {mcp.WithLog(ctx, "", nil), "two"}, {t.Context(), "three"}, {ctx, "four"}} {
				if _, err := mcp.Call[string](call.ctx, c, "talk", map[string]string{"Say": call.say}); err != nil {
					t.Error(err)
				}
			}
			if want := []string{"one", "four"}; !slices.Equal(own, want) {
				t.Errorf("the function of the call got %q, want %q", own, want)
			}
			for _, want := range []string{"two", "three"} {
				if got := <-general; got != want {
					t.Errorf("the function of the client got %q, want %q", got, want)
				}
			}
		})
	}
}

// Without a function, a call asks for no more than the client does.
func TestWithLogUndone(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("level", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		return string(mcp.RequestFromContext(ctx).LogLevel()), nil
	}, nil))
	c := connect(t, mux, nil)
	ctx := mcp.WithLog(t.Context(), mcp.LoggingLevelInfo, func(*mcp.LoggingMessageParams) {})
	for want, ctx := range map[string]context.Context{"info": ctx, "": mcp.WithLog(ctx, mcp.LoggingLevelDebug, nil)} {
		if got, err := mcp.Call[string](ctx, c, "level", nil); err != nil || got != want {
			t.Errorf("asked for %q, want %q; %v", got, want, err)
		}
	}
}

// What waits for a function that is slow is bounded in bytes as well. The newest is kept, and
// the loss is logged.
func TestWithLogThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all, size = 20, 1 << 20
		long := strings.Repeat("x", size)
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			for n := range all {
				mcp.ClientLogger(ctx).Info(fmt.Sprint(n, long))
			}
			return "", nil
		}, nil))
		var log strings.Builder
		c := connect(t, mux, &mcp.ClientOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		got, last, ready := 0, "", make(chan struct{})
		ctx := mcp.WithLog(t.Context(), mcp.LoggingLevelInfo, func(p *mcp.LoggingMessageParams) {
			<-ready
			got++
			last = strings.TrimRight(textOfLog(p), "x")
		})
		done := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, tool("talk", ""))
			done <- err
		}()
		synctest.Wait() // all have come
		close(ready)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got >= all || got < 10 || last != fmt.Sprint(all-1) {
			t.Errorf("%d messages of a megabyte were passed on, the last was %q", got, last)
		}
		if !strings.Contains(log.String(), "notifications are dropped") {
			t.Errorf("the log is %q", log.String())
		}
	})
}

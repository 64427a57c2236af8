// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// T49: progress comes only if it was asked for, grows, and ends with the request.
func TestProgress(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	late := make(chan func(), 1)
	mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		for _, done := range []float64{1, 1, 0.5, 2, 2, 3} {
			mcp.Progress(ctx, done, 3, "step")
		}
		late <- func() { mcp.Progress(ctx, 4, 3, "late") }
		return "done", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcptest.Conn) {
		var got []float64
		ctx := mcptest.WithProgress(t.Context(), func(p *mcp.ProgressParams) {
			if *p.Total != 3 || p.Message != "step" {
				t.Errorf("got %+v", p)
			}
			got = append(got, p.Progress)
		})
		if _, err := c.CallTool(ctx, tool("work", "")); err != nil {
			t.Fatal(err)
		}
		(<-late)()
		if !slices.Equal(got, []float64{1, 2, 3}) {
			t.Errorf("got %v", got)
		}
		received(c)
		mustCall(t, c, "work", "")
		(<-late)()
		if n := received(c); len(n) > 0 {
			t.Errorf("without a token got %+v", n)
		}
	})
}

// A token that the client chose comes back as it was.
func TestProgressToken(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 0, "")
		return "", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcptest.Conn) {
		p := tool("work", "")
		p.Meta.Set(mcp.MetaProgressToken, "p-7")
		if _, err := c.CallTool(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		var got mcp.ProgressParams
		if n := next(t, c, mcp.NotificationProgress); n.Decode(&got) != nil || got.ProgressToken != mcp.StringID("p-7") || got.Total != nil {
			t.Errorf("got %s", n.Params)
		}
		p.Meta.Set(mcp.MetaProgressToken, []int{1})
		_, err := c.CallTool(t.Context(), p)
		wantCode(t, err, mcp.CodeInvalidParams)
	})
}

func TestLogLevels(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		log := slog.New(mcp.NewLogHandler(ctx, &mcp.LogOptions{Name: "db"}))
		for _, level := range []slog.Level{
			slog.LevelDebug, slog.LevelInfo, mcp.LevelNotice, slog.LevelWarn,
			slog.LevelError, mcp.LevelCritical, mcp.LevelAlert, mcp.LevelEmergency,
		} {
			log.Log(ctx, level, "said")
		}
		return "", nil
	}, nil))
	all := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	debugging := &mcptest.Client{LogLevel: mcp.LogDebug}
	debugging.Run(t, mux, func(t *testing.T, c *mcptest.Conn) {
		for i, level := range all {
			if err := c.SetLogLevel(t.Context(), mcp.LoggingLevel(level)); err != nil {
				t.Fatal(err)
			}
			mustCall(t, c, "log", "")
			var got []string
			for _, n := range received(c) {
				var p mcp.LogParams
				if n.Decode(&p) == nil && n.Method == mcp.NotificationMessage && p.Logger == "db" {
					got = append(got, string(p.Level))
				}
			}
			if !slices.Equal(got, all[i:]) {
				t.Errorf("from %s on: got %q", level, got)
			}
		}
		err := c.SetLogLevel(t.Context(), "loud")
		if err == nil {
			_, err = c.CallTool(t.Context(), tool("log", ""))
		}
		wantCode(t, err, mcp.CodeInvalidParams)
	})
}

// Requests of the modern era hear nothing that they did not ask for.
func TestLogSilence(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Logger(ctx).Error("never mind")
		return "", nil
	}, nil))
	c := mcptest.Connect(t, mux)
	mustCall(t, c, "log", "")
	if n := received(c); len(n) > 0 {
		t.Errorf("got %+v", n)
	}
}

func TestLogData(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Logger(ctx).With("a", 1).WithGroup("g").With("b", errors.New("bad")).
			Info("hello", "c", time.Second, slog.Group("h", "d", true), "f", func() {})
		return "", nil
	}, nil))
	_, rec, err := mcptest.Do(t, mux, (&mcptest.Client{LogLevel: mcp.LogInfo}).NewRequest(mcp.MethodCallTool, tool("log", "")))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(rec.Notifications()[0].Params); !strings.Contains(got, `"a":1,"g":{"b":"bad","c":"1s","f":"0x`) ||
		!strings.Contains(got, `"h":{"d":true}},"msg":"hello"`) {
		t.Errorf("got %s", got)
	}
}

// Between two messages passes a least time, except for errors; what was dropped
// is counted.
func TestLogMinInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			log := slog.New(mcp.NewLogHandler(ctx, &mcp.LogOptions{MinInterval: time.Second}))
			for range 5 {
				log.Info("tick")
			}
			log.Error("tock")
			<-time.After(time.Second)
			log.Info("tick")
			return "", nil
		}, nil))
		_, rec, err := mcptest.Do(t, mux, (&mcptest.Client{LogLevel: mcp.LogInfo}).NewRequest(mcp.MethodCallTool, tool("log", "")))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range rec.Notifications() {
			var p struct {
				Data struct {
					Msg     string `json:"msg"`
					Dropped int    `json:"dropped"`
				} `json:"data"`
			}
			if err := n.Decode(&p); err != nil {
				t.Fatal(err)
			}
			got = append(got, p.Data.Msg+strings.Repeat("-", p.Data.Dropped))
		}
		if want := []string{"tick", "tock----", "tick"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// T16: what is said after the handler has returned is dropped, with an error.
func TestLateNotify(t *testing.T) {
	type late struct {
		ctx context.Context
		req *mcp.Request
	}
	kept := make(chan late, 1)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("keep", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if err := req.Notify(ctx, "notifications/vendor", map[string]any{"n": 1}); err != nil {
			t.Error(err)
		}
		kept <- late{ctx, req}
		return mcp.TextResult(""), nil
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcptest.Conn) {
		mustCall(t, c, "keep", "")
		next(t, c, "notifications/vendor")
		l := <-kept
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := l.req.Notify(l.ctx, "notifications/vendor", nil); !errors.Is(err, mcp.ErrNotDelivered) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		mustCall(t, c, "keep", "") // a round trip later, nothing has come
		<-kept
		if n := received(c); len(n) != 1 {
			t.Errorf("got %+v", n)
		}
	})
}

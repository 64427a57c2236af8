// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/middleware"
)

// Middleware around the mux limits calls, not tasks: neither tasks that start nor those
// that continue after a question.
func TestMiddlewareAroundTheMux(t *testing.T) {
	for name, mw := range map[string]mcp.Middleware{
		"timeout":     middleware.Timeout(10 * time.Second),
		"concurrency": middleware.Concurrency(1, 10),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newReplica(t, store.NewMemory(nil), nil, nil)
				r.mux.Use(mw)
				work := func(ctx context.Context) error {
					select {
					case <-time.After(15 * time.Second):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
				r.tool("work", func(ctx context.Context) (string, error) { return "done", work(ctx) })
				r.tool("ask", func(ctx context.Context) (string, error) {
					c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
					if err != nil {
						return "", err
					}
					return c.Codec, work(ctx)
				})
				conn := r.connect(t)
				first, second := start(t, conn, "work"), start(t, conn, "ask")
				answer(t, second, until(t, second, tasks.InputRequired), av1)
				synctest.Wait()
				began := time.Now()
				if _, err := conn.ListTools(t.Context(), nil); err != nil || time.Since(began) > 0 {
					t.Errorf("while tasks run: %v, after %v", err, time.Since(began))
				}
				for want, h := range map[string]*tasks.Handle{"done": first, "av1": second} {
					if got := text(t, until(t, h, tasks.Completed)); got != want {
						t.Errorf("the result is %q, want %q", got, want)
					}
				}
			})
		})
	}
}

// A handler that continues after a question has the context values set by middleware around
// the mux, and its context is cancelled when the task is cancelled.
func TestContextAfterAQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		type key struct{}
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				return next.ServeMCP(context.WithValue(ctx, key{}, req.Method), req)
			})
		})
		var cause error
		running := make(chan struct{})
		r.tool("ask", func(ctx context.Context) (string, error) {
			if _, err := mcp.Elicit[codec](ctx, "codec", "Which codec?"); err != nil {
				return "", err
			}
			if got := ctx.Value(key{}); got != mcp.MethodCallTool {
				t.Errorf("the value of the context is %v", got)
			}
			close(running)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "", cause
		})
		h := start(t, r.connect(t), "ask")
		answer(t, h, until(t, h, tasks.InputRequired), av1)
		<-running
		if err := h.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, h, tasks.Cancelled)
		if _, ok := errors.AsType[*mcp.CancelError](cause); !ok {
			t.Errorf("the cause is %v", cause)
		}
	})
}

// A limiter allows one call and rejects further calls for a minute.
type limiter struct{ began time.Time }

func (l *limiter) Take(context.Context, string) (time.Duration, error) {
	if l.began.IsZero() {
		l.began = time.Now()
		return 0, nil
	}
	return max(0, time.Minute-time.Since(l.began)), nil
}

// A task that cannot continue because its caller has exceeded a rate limit waits, however
// often it is rejected.
func TestRateLimitAroundTheMux(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		calls := func(_ context.Context, req *mcp.Request) string {
			if req.Method == mcp.MethodCallTool {
				return "calls"
			}
			return "" // no limit
		}
		r.mux.Use(middleware.RateLimit(calls, new(limiter)))
		r.tool("ask", func(ctx context.Context) (string, error) {
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return c.Codec, err
		})
		h := start(t, r.connect(t), "ask")
		answer(t, h, until(t, h, tasks.InputRequired), av1)
		if got := text(t, until(t, h, tasks.Completed)); got != "av1" {
			t.Errorf("the result is %q", got)
		}
	})
}

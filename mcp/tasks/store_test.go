// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// The n-th operation of the store fails, for every n and in every way. Either the call
// returns a clear error, or the task completes and its steps are run once.
func TestStoreFailsInEveryPlace(t *testing.T) {
	for name, f := range map[string]fault{"fails": fails, "is not confirmed": unheard, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				reached := false
				t.Run(fmt.Sprint("operation ", n), func(t *testing.T) {
					inBubble(t, func(t *testing.T) { reached = oneFailure(t, n, f) })
				})
				if !reached {
					t.Logf("%d operations", n-1)
					return
				}
			}
		})
	}
}

// oneFailure runs a task while the n-th operation fails, and reports whether there was an
// n-th operation.
func oneFailure(t *testing.T, n int, f fault) (reached bool) {
	steps := new(ledger)
	r := newReplica(t, store.NewMemory(nil), nil, nil)
	r.tool("ask", func(ctx context.Context) (string, error) {
		if err := steps.once(ctx, "before"); err != nil {
			return "", err
		}
		c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
		if err != nil {
			return "", err
		}
		return c.Codec, steps.once(ctx, "after")
	})
	c := r.connectAs(t, &mcp.Principal{Subject: "ada"})
	ops := 0
	r.link.set(func(op, _ string) fault {
		if op == "publish" || op == "subscribe" {
			return works
		}
		if ops++; ops == n {
			reached = true
			return f
		}
		return works
	})
	call := func() (string, error) { return mcp.Call[string](t.Context(), c, "ask", struct{}{}) }
	got, err := call()
	switch {
	case err == nil && got != "av1":
		t.Errorf("the result is %q", got)
	case err == nil:
		if again := steps.repeated(); again != nil || steps.count("after") != 1 {
			t.Errorf("run again: %v", again)
		}
	case !strings.Contains(err.Error(), "tasks cannot be stored at the moment") || strings.Contains(err.Error(), errDown.Error()):
		t.Errorf("the error is %v", err)
	}
	r.link.set(nil)
	<-time.After(time.Minute) // sweepers clean up
	runs := steps.count("before")
	if got, err := call(); got != "av1" || err != nil || steps.count("before") != runs+1 {
		t.Errorf("afterwards: %q, %v; %d runs", got, err, steps.count("before")-runs)
	}
	return reached
}

// If the values that a handler remembers or returns are too large for the store, or exceed
// the limit, the task ends with a clear error.
func TestTooLarge(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		opts := &tasks.Options{MaxBytes: 3 << 20, Lease: 5 * time.Second}
		r := newReplica(t, store.NewMemory(nil), opts, nil)
		size := 0
		r.tool("result", func(context.Context) (string, error) { return strings.Repeat("x", size), nil })
		r.background.Tool("remember", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			_, err := mcp.Once(ctx, "large", func(context.Context) (string, error) { return strings.Repeat("x", 2<<20), nil })
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("done")}}, err
		}))
		c := r.connect(t)
		size = 1_000_000 // four parts
		if d := until(t, start(t, c, "result"), tasks.Completed); len(text(t, d)) != size {
			t.Errorf("a result of %d bytes has %d", size, len(text(t, d)))
		}
		size = 4 << 20
		if d := until(t, start(t, c, "result"), tasks.Failed); d.Error.Code != mcp.CodeTooLarge || !strings.Contains(d.StatusMessage, "the limit is 3145728") {
			t.Errorf("too large a result: %v", d.Error)
		}
		begun := time.Now()
		if d := until(t, start(t, c, "remember"), tasks.Failed); !strings.Contains(d.StatusMessage, "too large") || time.Since(begun) > 2*time.Second {
			t.Errorf("too large a value, after %v: %v", time.Since(begun), d.Error)
		}
	})
}

// A question or an error that is too large for the store fails the task rather than causing
// it to be run again, whether it occurs when the task is created or later.
func TestTooLargeOutcome(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "later": time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r, runs, large := newReplica(t, store.NewMemory(nil), nil, nil), new(ledger), strings.Repeat("x", 2<<20)
				r.tool("ask", func(ctx context.Context) (string, error) {
					runs.run("ask")
					<-time.After(takes)
					c, err := mcp.Elicit[codec](ctx, "codec", large)
					return c.Codec, err
				})
				r.background.Tool("fail", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
					runs.run("fail")
					<-time.After(takes)
					return nil, mcp.Errorf(mcp.CodeInternalError, "broken").WithData(large)
				}))
				c := r.connect(t)
				for _, tool := range []string{"ask", "fail"} {
					d := until(t, start(t, c, tool), tasks.Failed)
					if d.Error.Code != mcp.CodeTooLarge || runs.count(tool) != 1 {
						t.Errorf("%s: %v after %d runs", tool, d.Error, runs.count(tool))
					}
				}
			})
		})
	}
}

// A handler that panics, or whose result cannot be encoded, fails only its task.
func TestPanics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		add := func(name string, fn mcp.HandlerFunc) { r.background.Tool(name, fn) }
		add("panic", func(context.Context, *mcp.Request) (mcp.Result, error) { panic("secret") })
		add("abort", func(context.Context, *mcp.Request) (mcp.Result, error) { panic(mcp.ErrAbortHandler) })
		add("once", func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			_, err := mcp.Once(ctx, "step", func(context.Context) (int, error) { panic("secret") })
			return nil, err
		})
		add("nothing", func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, nil })
		add("nil", func(context.Context, *mcp.Request) (mcp.Result, error) { return (*mcp.CallToolResult)(nil), nil })
		add("content", func(context.Context, *mcp.Request) (mcp.Result, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{nil}}, nil
		})
		add("extra", func(context.Context, *mcp.Request) (mcp.Result, error) {
			res := &mcp.CallToolResult{}
			res.Meta.Set("broken", "x")
			res.Meta["broken"] = json.RawMessage("{")
			return res, nil
		})
		add("encode", func(context.Context, *mcp.Request) (mcp.Result, error) { return &panickyResult{}, nil })
		c := r.connect(t)
		for _, name := range []string{"panic", "abort", "once", "nothing", "nil", "content", "extra", "encode"} {
			d := until(t, start(t, c, name), tasks.Failed)
			if d.Error == nil || strings.Contains(d.Error.Message, "secret") {
				t.Errorf("%s: %v", name, d.Error)
			}
		}
	})
}

type panickyResult struct {
	mcp.ResultBase
	Value panicky `json:"value"`
}

type panicky struct{}

func (panicky) MarshalJSON() ([]byte, error) { panic("secret") }

// PublicError determines the error text that clients see, in tasks as in calls.
func TestPublicError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		mux := mcp.NewMux("farm", "1", &mcp.MuxOptions{PublicError: func(context.Context, error) error { return errors.New("sorry") }})
		manager := tasks.New("farm", nil)
		manager.Register(mux)
		t.Cleanup(func() { _ = manager.Shutdown(context.Background()) })
		r := &replica{mux: mux, manager: manager, background: mux.With(manager.Background(nil))}
		r.tool("fail", func(context.Context) (string, error) { return "", errors.New("the password is 1234") })
		r.background.Tool("break", mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return nil, errors.New("the password is 1234")
		}), &mcp.Tool{}))
		c := r.connect(t)
		if got := text(t, until(t, start(t, c, "fail"), tasks.Completed)); got != "error: sorry" {
			t.Error(got)
		}
		if d := until(t, start(t, c, "break"), tasks.Failed); d.Error.Message != "sorry" || strings.Contains(d.StatusMessage, "1234") {
			t.Error(d.Error, d.StatusMessage)
		}
	})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// newOutcomes returns a server with one tool of each kind.
func newOutcomes(t testing.TB) *replica {
	t.Helper()
	r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: 100 * time.Millisecond, Lease: 3 * time.Second, TTL: time.Minute}, nil)
	text := func(fn func(ctx context.Context) (string, error)) mcp.Handler {
		return mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) { return fn(ctx) }, nil)
	}
	r.tool("quick", func(context.Context) (string, error) { return "done", nil })
	r.tool("slow", func(context.Context) (string, error) { <-time.After(50 * time.Millisecond); return "slow", nil })
	r.tool("fail", func(context.Context) (string, error) { return "", errors.New("no film") })
	r.tool("ask", func(ctx context.Context) (string, error) {
		c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
		if err != nil {
			return "", err
		}
		again, err := mcp.Elicit[codec](ctx, "again", "And which again?")
		return c.Codec + again.Codec, err
	})
	r.tool("wait", func(ctx context.Context) (string, error) {
		mcp.Progress(ctx, 1, 2, "waiting")
		<-ctx.Done()
		return "stopped", context.Cause(ctx)
	})
	r.tool("stubborn", func(ctx context.Context) (string, error) { <-ctx.Done(); return "done", nil })
	r.background.Tool("break", mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(-32050, "the farm is on fire")
	}), &mcp.Tool{}))
	r.mux.Tool("plain", text(func(context.Context) (string, error) { return "plain", nil }))
	r.mux.With(r.manager.Background(&tasks.BackgroundOptions{Required: true})).Tool("long", text(func(context.Context) (string, error) { return "long", nil }))
	r.mux.With(r.manager.Background(&tasks.BackgroundOptions{After: time.Hour})).Tool("after", text(func(context.Context) (string, error) { return "after", nil }))
	return r
}

// outcomes lists the possible outcomes of a task on a server returned by newOutcomes. The
// names of its tools have the prefix.
var outcomes = map[string]func(t *testing.T, c *mcp.Conn, prefix string){
	"at once": func(t *testing.T, c *mcp.Conn, prefix string) {
		check(t, wait(t, c, prefix+"quick"), nil, "done")
	},
	"polled": func(t *testing.T, c *mcp.Conn, prefix string) {
		h := start(t, c, prefix+"slow")
		if d := until(t, h, tasks.Completed); text(t, d) != "slow" {
			t.Errorf("%+v", d)
		}
		if d := state(t, h); text(t, d) != "slow" { // polled again
			t.Errorf("%+v", d)
		}
	},
	"asked twice": func(t *testing.T, c *mcp.Conn, prefix string) {
		check(t, wait(t, c, prefix+"ask"), nil, "av1av1")
	},
	"asked, and answered by hand": func(t *testing.T, c *mcp.Conn, prefix string) {
		h := start(t, c, prefix+"ask")
		first := until(t, h, tasks.InputRequired)
		answer(t, h, first, av1)
		second := until(t, h, tasks.InputRequired)
		for key := range first.InputRequests {
			if _, again := second.InputRequests[key]; again {
				t.Errorf("the key %q names two questions", key)
			}
		}
		answer(t, h, first, `{"action":"accept","content":{"codec":"vp9"}}`) // already answered
		answer(t, h, second, `{"action":"accept","content":{"codec":"h265"}}`)
		if d := until(t, h, tasks.Completed); text(t, d) != "av1h265" {
			t.Errorf("%+v", d)
		}
	},
	"cancelled": func(t *testing.T, c *mcp.Conn, prefix string) {
		h := start(t, c, prefix+"wait")
		for range 2 { // the second call has no effect
			if err := h.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		until(t, h, tasks.Cancelled)
		if _, err := h.Wait(t.Context()); err == nil {
			t.Error("a cancelled task has a result")
		}
	},
	"failed": func(t *testing.T, c *mcp.Conn, prefix string) {
		h := start(t, c, prefix+"break")
		if d := until(t, h, tasks.Failed); d.Error == nil || d.Error.Code != -32050 {
			t.Errorf("%+v", d.Error)
		}
		if _, err := h.Wait(t.Context()); mcp.CodeOf(err) != -32050 {
			t.Error(err)
		}
	},
	"the tool failed": func(t *testing.T, c *mcp.Conn, prefix string) {
		if d := until(t, start(t, c, prefix+"fail"), tasks.Completed); text(t, d) != "error: no film" {
			t.Errorf("%+v", d)
		}
	},
	"unknown": func(t *testing.T, c *mcp.Conn, _ string) {
		h := tasks.Attach(c, strings.Repeat("a", 26))
		_, err := h.Get(t.Context())
		for _, err := range []error{err, h.Cancel(t.Context()), h.Update(t.Context(), map[string]json.RawMessage{})} {
			if mcp.CodeOf(err) != mcp.CodeInvalidParams {
				t.Error(err)
			}
		}
	},
	"an ordinary tool": func(t *testing.T, c *mcp.Conn, prefix string) {
		h, res, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: prefix + "plain", Arguments: json.RawMessage("{}")})
		if h != nil || err != nil || res == nil {
			t.Errorf("%v, %v, %v", h, res, err)
		}
	},
}

// Every outcome of a task looks the same over every transport, whether the client drives the
// task or its caller handles it.
func TestEveryOutcome(t *testing.T) {
	for _, path := range mcptest.Paths() {
		if !slices.Contains(path.Versions(), mcp.LatestVersion) {
			continue
		}
		for name, test := range outcomes {
			t.Run(path.Name+"/"+name, func(t *testing.T) {
				test(t, mcptest.Dial(t, path.Serve(t, newOutcomes(t).mux), options()), "")
			})
		}
	}
}

func wait(t *testing.T, c *mcp.Conn, tool string) string {
	t.Helper()
	res, err := start(t, c, tool).Wait(t.Context())
	if err != nil || res.IsError {
		t.Fatalf("%s: %+v, %v", tool, res, err)
	}
	return res.Content[0].(*mcp.TextContent).Text
}

func check(t *testing.T, got string, err error, want string) {
	t.Helper()
	if got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

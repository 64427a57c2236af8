// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/transport"
)

// outcomes lists the possible outcomes of a task on a server returned by newOlder. The
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

// Every outcome of a task looks the same to clients of both eras and over every transport,
// whether they let the client drive the task or handle it themselves.
func TestEveryOutcome(t *testing.T) {
	everywhere(t, func(t *testing.T, path mcptest.Path, version string) {
		for name, test := range outcomes {
			t.Run(name, func(t *testing.T) {
				opts := options()
				opts.Version = version
				test(t, mcptest.Dial(t, path.Serve(t, newOlder(t).mux), opts), "")
			})
		}
	})
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

// A client that does not support tasks can call a tool that requires a task like any other
// tool. Only a server of 2025-11-25 allows that.
func TestRequiredWithoutTheExtension(t *testing.T) {
	for _, path := range mcptest.Paths() {
		t.Run(path.Name, func(t *testing.T) {
			r := newOlder(t)
			required := r.mux.With(r.manager.Background(&tasks.BackgroundOptions{Required: true}))
			required.Tool("question", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
				c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
				return c.Codec, err
			}, nil))
			required.Tool("broken", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
				return nil, mcp.Errorf(-32050, "the farm is on fire")
			}))
			opts := options()
			opts.Version, opts.Extensions = r202511, nil
			c := mcptest.Dial(t, path.Serve(t, r.mux), opts)
			for range 2 { // before the tools are listed, and afterwards
				for tool, want := range map[string]string{"long": "long", "question": "av1", "plain": "plain"} {
					got, err := mcp.Call[string](t.Context(), c, tool, struct{}{})
					check(t, got, err, want)
				}
				if _, err := mcp.Call[string](t.Context(), c, "broken", struct{}{}); mcp.CodeOf(err) != -32050 {
					t.Error(err)
				}
				for tool, err := range c.Tools(t.Context(), nil) {
					if err != nil || tool.Extra["execution"] != nil {
						t.Errorf("%+v, %v", tool, err)
					}
				}
			}
		})
	}
}

// A caller that gives up such a call cancels its task.
func TestRequiredGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		ended := make(chan error, 1)
		r.mux.With(r.manager.Background(&tasks.BackgroundOptions{Required: true})).Tool("hold", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return "", context.Cause(ctx)
		}, nil))
		opts := options()
		opts.Version, opts.Extensions = r202511, nil
		c := (&mcptest.Client{Options: *opts}).Connect(t, r.mux)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := mcp.Call[string](ctx, c, "hold", struct{}{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if cancelled, ok := errors.AsType[*mcp.CancelError](<-ended); !ok {
			t.Errorf("the handler ended with %v", cancelled)
		}
	})
}

// A server of 2025-11-25 looks like a current one: it declares the extension.
func TestOlderServerLooksNewer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, version := range mcp.LegacyVersions() {
			opts := options()
			opts.Version = version
			caps := (&mcptest.Client{Options: *opts}).Connect(t, newOlder(t).mux).Server().Capabilities
			_, declared := caps.Extensions[tasks.Extension]
			if want := version == r202511; declared != want || caps.Extra["tasks"] != nil {
				t.Errorf("%s: %+v", version, caps)
			}
		}
	})
}

// The user is asked once, even if several callers poll the task, and a question that the
// server withdraws disappears.
func TestOlderQuestionsAreShared(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		var asked atomic.Int64
		opts := options()
		elicit := opts.Elicit
		opts.Version = r202511
		opts.Elicit = func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked.Add(1)
			return elicit(ctx, p)
		}
		c := (&mcptest.Client{Options: *opts}).Connect(t, r.mux)
		h := start(t, c, "ask")
		var d *tasks.DetailedTask
		for range 3 {
			d = until(t, h, tasks.InputRequired)
		}
		if len(d.InputRequests) != 1 {
			t.Errorf("%+v", d.InputRequests)
		}
		other := tasks.Attach(r.connect(t), h.ID)
		answer(t, other, until(t, other, tasks.InputRequired), av1)
		synctest.Wait()
		if again := state(t, h); len(again.InputRequests) != 1 || fmt.Sprint(again.InputRequests) == fmt.Sprint(d.InputRequests) {
			t.Errorf("%+v after %+v", again.InputRequests, d.InputRequests)
		}
		res, err := h.Wait(t.Context())
		if err != nil || res.Content[0].(*mcp.TextContent).Text != "av1av1" || asked.Load() != 1 {
			t.Errorf("%+v, %v, asked %d times", res, err, asked.Load())
		}
	})
}

// A client that has not listed the tools searches all pages of the list for a tool that
// must be called as a task.
func TestOlderServerListsPages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newOlderServer()
		first := `{"tools":[{"name":"plain","inputSchema":{"type":"object"}}],"nextCursor":"2"}`
		s.set(mcp.MethodListTools, first, olderTools)
		opts := options()
		opts.Version = r202511
		c := mcptest.Dial(t, transport.FromStream(s.connect), opts)
		if got, err := mcp.Call[string](t.Context(), c, "long", struct{}{}); err != nil || got != "av1" {
			t.Errorf("got %q, %v", got, err)
		}
		if text := s.transcript.String(); !strings.Contains(text, `"method":"tools/list","params":{"cursor":"2"}`) || !strings.Contains(text, `"task":{`) {
			t.Errorf("the conversation was\n%s", text)
		}
	})
}

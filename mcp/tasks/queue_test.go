// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// A caller with a constant stream of calls does not delay others: a new call does not take
// a slot that others wait for, and callers take turns.
func TestFairUnderAConstantStream(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 2, Lease: time.Minute, MaxPerCaller: 100_000}, nil)
		r.tool("quick", func(context.Context) (string, error) { <-time.After(time.Second); return "", nil })
		greedy, modest := r.connectAs(t, &mcp.Principal{Subject: "greedy"}), r.connectAs(t, &mcp.Principal{Subject: "modest"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ctx.Err() == nil { // five calls a second, and two slots
				_, _, _ = tasks.Start(ctx, greedy, quickCall)
				<-time.After(190 * time.Millisecond)
			}
		}()
		<-time.After(20 * time.Second) // a queue has formed
		for range 5 {
			h := start(t, modest, "quick")
			begun := time.Now()
			until(t, h, tasks.Completed)
			if wait := time.Since(begun); wait > 3*time.Second {
				t.Errorf("the modest caller waited for %v", wait)
			}
		}
	})
}

// A queued task starts as soon as a slot is free, even if the list of working tasks has been
// swept in the meantime.
func TestQueuedTaskOutlastsASweep(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 1, Lease: time.Hour}, nil)
		const sweep = 30*time.Minute + time.Second // one has ended by then, a second has not begun
		r.tool("slow", func(context.Context) (string, error) { <-time.After(sweep); return "", nil })
		r.tool("quick", func(context.Context) (string, error) { return "", nil })
		c := r.connect(t)
		start(t, c, "slow")
		h := start(t, c, "quick")
		<-time.After(sweep)
		synctest.Wait()
		if d := state(t, h); d.Status != tasks.Completed {
			t.Errorf("the task is %s", d.Status)
		}
	})
}

// The cost of releasing a slot does not depend on how many tasks wait for it.
func TestLongQueueCostsNothingMore(t *testing.T) {
	perTask := func(waiting int) (ops float64) {
		inBubble(t, func(t *testing.T) {
			opts := &tasks.Options{MaxRunning: 1, Lease: time.Hour, PollInterval: time.Hour}
			r := newReplica(t, store.NewMemory(nil), opts, nil)
			gate := make(chan struct{})
			r.tool("quick", func(context.Context) (string, error) { <-gate; return "", nil })
			c := r.connect(t)
			for range waiting {
				start(t, c, "quick")
			}
			_, before := r.link.counts()
			for range 10 {
				gate <- struct{}{}
				synctest.Wait()
			}
			_, after := r.link.counts()
			ops = float64(after-before) / 10
			close(gate)
		})
		return ops
	}
	few, many := perTask(20), perTask(500)
	if many > few+1 {
		t.Errorf("a task takes %v operations of the store among 20 that wait, and %v among 500", few, many)
	}
}

// A task that ends immediately is written once, and the result that creates it says that it
// has ended.
func TestQuickTaskIsWrittenOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("quick", func(context.Context) (string, error) { return "done", nil })
		client := sender(&mcp.Principal{Subject: "ada"}, true)
		res, err := serve(t.Context(), r.mux, client.NewRequest(mcp.MethodCallTool, map[string]any{"name": "quick"}), nil)
		if created, ok := res.(*tasks.CreateResult); !ok || created.Status != tasks.Completed {
			t.Errorf("%+v, %v", res, err)
		}
		if puts, _ := r.link.counts(); fmt.Sprint(puts) != "map[caller:1 task:1]" {
			t.Errorf("written: %v", puts)
		}
	})
}

// A handler that exits its goroutine fails only its own task or call.
func TestGoexit(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		for _, runs := range []time.Duration{0, 2 * time.Second} {
			t.Run(fmt.Sprint("after ", after, " runs ", runs), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 1}, &tasks.BackgroundOptions{After: after})
					r.tool("exit", func(context.Context) (string, error) {
						if runs > 0 {
							<-time.After(runs)
						}
						runtime.Goexit()
						return "", nil
					})
					c := r.connect(t)
					for range 2 { // the slot is free again
						h, _, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "exit", Arguments: json.RawMessage("{}")})
						switch {
						case after > runs && mcp.CodeOf(err) != mcp.CodeInternalError:
							t.Error("the call ends with", err)
						case after <= runs && err != nil:
							t.Error("no task:", err)
						case after <= runs:
							until(t, h, tasks.Failed)
						}
					}
				})
			})
		}
	}
}

// If creating a task fails and cannot be undone because the store is unavailable, the task
// does not run later.
func TestAbandonedCreation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, runs := store.NewMemory(nil), new(ledger)
		slow := func(context.Context) (string, error) { runs.run("all"); <-time.After(time.Second); return "", nil }
		first, other := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		first.tool("slow", slow)
		other.tool("slow", slow)
		down := false
		first.link.set(func(op, key string) fault {
			switch {
			case down:
				return fails
			case op == "put" && kindOf(key) == "task":
				down = true
				return unheard
			}
			return works
		})
		_, _, err := tasks.Start(t.Context(), first.connect(t), &mcp.CallToolParams{Name: "slow", Arguments: json.RawMessage("{}")})
		if mcp.CodeOf(err) != mcp.CodeInternalError {
			t.Fatal("the call ends with", err)
		}
		<-time.After(time.Second)
		first.link.set(nil) // the store is back before the lease ends
		<-time.After(time.Minute)
		if n := runs.count("all"); n != 1 {
			t.Errorf("the handler was run %d times", n)
		}
	})
}

// If a client answers while the run that asked is still ending, the task continues
// immediately.
func TestAnsweredBeforeTheRunHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{Lease: time.Hour}, nil)
		r.tool("ask", func(ctx context.Context) (string, error) {
			<-time.After(time.Second)
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return c.Codec, err
		})
		c := r.connect(t)
		h := start(t, c, "ask")
		r.link.hook(nil, func(key string, value []byte) {
			if kindOf(key) == "task" && strings.Contains(string(value), `"input_required"`) {
				if err := h.Update(context.Background(), map[string]json.RawMessage{"codec": json.RawMessage(av1)}); err != nil {
					t.Error(err)
				}
			}
		})
		begun := time.Now()
		if got := text(t, until(t, h, tasks.Completed)); got != "av1" || time.Since(begun) > 10*time.Second {
			t.Errorf("%q after %v", got, time.Since(begun))
		}
	})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// A waiting task writes to the store only to renew its lease.
func TestQuietTaskDoesNotWrite(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("wait", func(ctx context.Context) (string, error) {
			_, err := mcp.Once(ctx, "step", func(context.Context) (int, error) { return 1, nil })
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			case <-time.After(10 * time.Second):
				return "done", err
			}
		})
		h := start(t, r.connect(t), "wait")
		<-time.After(11 * time.Second)
		until(t, h, tasks.Completed)
		if puts, _ := r.link.counts(); puts["task"] > 15 {
			t.Errorf("the record was written %d times in ten seconds", puts["task"])
		}
	})
}

// Shutdown hands a task over, and another process continues it immediately, even though the
// tool turns errors into results.
func TestShutdownHandsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, steps := store.NewMemory(nil), new(ledger)
		slow := func(gate <-chan struct{}) func(ctx context.Context) (string, error) {
			return func(ctx context.Context) (string, error) {
				if err := steps.once(ctx, "one"); err != nil {
					return "", err
				}
				select {
				case <-ctx.Done():
					return "", context.Cause(ctx)
				case <-gate:
				}
				return "done", steps.once(ctx, "two")
			}
		}
		gate := make(chan struct{})
		first := newReplica(t, shared, nil, nil)
		first.tool("slow", slow(nil))
		h := start(t, first.connect(t), "slow")
		synctest.Wait()

		second := newReplica(t, shared, nil, nil)
		second.tool("slow", slow(gate))
		c := second.connect(t)
		synctest.Wait()
		begun := time.Now()
		first.shutdown(t)
		close(gate)
		synctest.Wait()
		d := state(t, tasks.Attach(c, h.ID))
		if d.Status != tasks.Completed || text(t, d) != "done" {
			t.Errorf("%v after Shutdown the task is %s: %s", time.Since(begun), d.Status, d.Result)
		}
		if again := steps.repeated(); again != nil {
			t.Error("run twice:", again)
		}
	})
}

// A step that ends after Shutdown has begun is stored, so the next process does not repeat
// it.
func TestShutdownKeepsTheStepUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, steps := store.NewMemory(nil), new(ledger)
		tool := func(ctx context.Context) (string, error) {
			_, err := mcp.Once(ctx, "step", func(context.Context) (int, error) {
				steps.run("step")
				<-time.After(time.Second) // regardless of ctx
				return 1, nil
			})
			if err == nil {
				err = context.Cause(ctx)
			}
			return "done", err
		}
		first, second := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		first.tool("step", tool)
		second.tool("step", tool)
		h := start(t, first.connect(t), "step")
		<-time.After(time.Second / 2)
		first.shutdown(t)
		until(t, tasks.Attach(second.connect(t), h.ID), tasks.Completed)
		if n := steps.count("step"); n != 1 {
			t.Errorf("the step was run %d times", n)
		}
	})
}

// While Shutdown waits for a slow handler, no other process takes over the task.
func TestShutdownKeepsTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, steps := store.NewMemory(nil), new(ledger)
		tool := func(context.Context) (string, error) {
			steps.run("all")
			<-time.After(20 * time.Second)
			return "done", nil
		}
		first, second := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		first.tool("long", tool)
		second.tool("long", tool)
		h := start(t, first.connect(t), "long")
		synctest.Wait()
		first.shutdown(t)
		until(t, tasks.Attach(second.connect(t), h.ID), tasks.Completed)
		if n := steps.count("all"); n != 1 {
			t.Errorf("the handler was run %d times", n)
		}
	})
}

// A cancelled task has the status cancelled, even if the tool turns the error of its
// context into a result.
func TestCancelledWhileWorking(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("wait", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		h := start(t, r.connect(t), "wait")
		synctest.Wait()
		if err := h.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d := state(t, h); d.Status != tasks.Cancelled || d.Result != nil {
			t.Errorf("the task is %s: %s", d.Status, d.Result)
		}
	})
}

// A task whose TTL has passed fails with a message that says so.
func TestExpiredWhileWorking(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, &tasks.BackgroundOptions{TTL: time.Minute})
		r.tool("wait", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		h := start(t, r.connect(t), "wait")
		<-time.After(time.Minute + time.Second)
		if d := state(t, h); d.Status != tasks.Failed || d.Error == nil || d.Error.Message != "the TTL of the task has passed" {
			t.Errorf("the task is %s: %s %v", d.Status, d.Result, d.Error)
		}
		<-time.After(2 * time.Minute)
		if _, err := h.Get(t.Context()); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("later: %v", err)
		}
	})
}

// A server can be restarted any number of times while a task works: being shut down is not a
// failed attempt.
func TestShutdownIsNoAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, runs := store.NewMemory(nil), 0
		open := func() *replica {
			r := newReplica(t, shared, &tasks.Options{MaxAttempts: 2, Lease: 3 * time.Second}, nil)
			r.tool("long", func(ctx context.Context) (string, error) {
				if runs++; runs == 10 {
					return "done", nil
				}
				<-ctx.Done()
				return "", context.Cause(ctx)
			})
			synctest.Wait()
			return r
		}
		r := open()
		h := start(t, r.connect(t), "long")
		for range 9 {
			synctest.Wait()
			next := open()
			h = tasks.Attach(next.connect(t), h.ID)
			r.shutdown(t)
			synctest.Wait()
			r = next
		}
		until(t, h, tasks.Completed)
	})
}

// A cancelled task is cancelled even if its handler fails by itself before it hears of that, or
// if the client cancelled the call while it became a task.
func TestCancelledAndFailed(t *testing.T) {
	failing := func(gate <-chan struct{}) mcp.Handler {
		return mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			<-gate
			return nil, mcp.Errorf(-32050, "the farm is on fire")
		}), &mcp.Tool{})
	}
	t.Run("before it hears of that", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			shared, gate := store.NewMemory(nil), make(chan struct{})
			runs, other := newReplica(t, shared, &tasks.Options{PollInterval: time.Hour, Lease: time.Hour}, nil), newReplica(t, shared, nil, nil)
			other.link.set(func(op, _ string) fault { // no hints
				if op == "publish" {
					return fails
				}
				return works
			})
			runs.background.Tool("break", failing(gate))
			h := tasks.Attach(other.connect(t), start(t, runs.connect(t), "break").ID)
			if err := h.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			close(gate)
			until(t, h, tasks.Cancelled)
		})
	})
	t.Run("while it became a task", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			gate := make(chan struct{})
			r := newReplica(t, store.NewMemory(nil), nil, &tasks.BackgroundOptions{After: time.Second})
			r.background.Tool("break", failing(gate))
			ctx, cancel := context.WithCancelCause(t.Context())
			r.link.hook(nil, func(key string, _ []byte) {
				if kindOf(key) == "task" {
					cancel(&mcp.CancelError{Reason: "no longer needed"})
				}
			})
			req := sender(nil, true).NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "break", Arguments: json.RawMessage("{}")})
			res, err := serve(ctx, r.mux, req, nil)
			created, ok := res.(*tasks.CreateResult)
			if !ok {
				t.Fatalf("%v, %v", res, err)
			}
			close(gate)
			until(t, tasks.Attach(r.connect(t), created.ID), tasks.Cancelled)
		})
	})
}

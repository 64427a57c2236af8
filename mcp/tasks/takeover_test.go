// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// The owner of a task loses its store between steps. Another process continues with the
// next step, and the former owner can no longer write anything.
func TestTakeOverInTheMiddle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, steps := store.NewMemory(nil), new(ledger)
		var first, second *replica
		tool := func(name string) func(ctx context.Context) (string, error) {
			return func(ctx context.Context) (string, error) {
				for i := range 5 {
					if i == 3 && name == "first" {
						first.link.cut()
						<-time.After(20 * time.Second) // the lease expires, and another process takes over
						first.link.set(nil)
						if ctx.Err() == nil {
							t.Error("the context of the former owner goes on")
						}
					}
					if err := steps.once(ctx, fmt.Sprint(name, " ", i)); err != nil && name == "second" {
						return "", err
					}
				}
				return "by " + name, nil
			}
		}
		first, second = newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		first.tool("steps", tool("first"))
		second.tool("steps", tool("second"))
		h := tasks.Attach(second.connect(t), start(t, first.connect(t), "steps").ID)
		if d := until(t, h, tasks.Completed); text(t, d) != "by second" {
			t.Errorf("the result is %s", d.Result)
		}
		ended := state(t, h)
		<-time.After(time.Minute)
		if d := state(t, h); text(t, d) != "by second" || !d.LastUpdatedAt.Equal(ended.LastUpdatedAt) {
			t.Errorf("the former owner wrote %s", d.Result)
		}
	})
}

// A completed and stored step is not run again by the process that takes over.
func TestCompletedStepsAreNotRepeated(t *testing.T) {
	for broken := range 5 {
		t.Run(fmt.Sprint("after step ", broken), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				shared, steps := store.NewMemory(nil), new(ledger)
				var first, second *replica
				tool := func(r **replica) func(ctx context.Context) (string, error) {
					return func(ctx context.Context) (string, error) {
						for i := range 5 {
							if err := steps.once(ctx, fmt.Sprint("step ", i)); err != nil {
								return "", err
							}
							if i == broken && *r == first {
								first.link.cut()
							}
							<-time.After(time.Second)
						}
						return "done", nil
					}
				}
				first, second = newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
				first.tool("steps", tool(&first))
				second.tool("steps", tool(&second))
				h := tasks.Attach(second.connect(t), start(t, first.connect(t), "steps").ID)
				until(t, h, tasks.Completed)
				for i := range broken + 1 {
					if n := steps.count(fmt.Sprint("step ", i)); n != 1 {
						t.Errorf("step %d was run %d times", i, n)
					}
				}
				first.link.set(nil)
			})
		})
	}
}

// A client answers at one process before the process that asked has removed the task from
// the list. The task stays listed and survives the loss of its new owner.
func TestAnsweredBeforeTheListIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		delayed := make(chan struct{})
		tool := func(r **replica) func(ctx context.Context) (string, error) {
			return func(ctx context.Context) (string, error) {
				if _, err := mcp.Elicit[codec](ctx, "codec", "Which codec?"); err != nil {
					return "", err
				}
				if (*r).link.isCut() {
					return "", errDown
				}
				return "done", nil
			}
		}
		var asks, dies, third *replica
		asks, dies = newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		asks.tool("ask", tool(&asks))
		dies.tool("ask", func(ctx context.Context) (string, error) {
			_, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			dies.link.cut()
			return "", err
		})
		var asked, blocked atomic.Bool
		asks.link.hook(func(op, key string) {
			if op == "get" && kindOf(key) == "working" && asked.Load() && blocked.CompareAndSwap(false, true) {
				<-delayed
			}
		}, func(key string, value []byte) {
			if kindOf(key) == "task" && strings.Contains(string(value), `"input_required"`) {
				asked.Store(true)
			}
		})
		h := tasks.Attach(dies.connect(t), start(t, asks.connect(t), "ask").ID)
		d := until(t, h, tasks.InputRequired)
		answer(t, h, d, `{"action":"accept","content":{"codec":"av1"}}`)
		synctest.Wait()
		close(delayed)
		asks.shutdown(t)
		third = newReplica(t, shared, nil, nil)
		third.tool("ask", tool(&third))
		until(t, tasks.Attach(third.connect(t), h.ID), tasks.Completed)
	})
}

// If the process that runs a task disappears repeatedly, the task eventually fails with a
// message that says so. Completed steps count as progress.
func TestMaxAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, runs := store.NewMemory(nil), new(ledger)
		var replicas []*replica
		for range 9 {
			r := newReplica(t, shared, nil, nil)
			r.tool("die", func(ctx context.Context) (string, error) {
				runs.run("all")
				if runs.count("all") <= 3 { // progress, which resets the attempts
					_ = runs.once(ctx, fmt.Sprint("step ", runs.count("all")))
				}
				r.link.cut()
				<-ctx.Done()
				return "", context.Cause(ctx)
			})
			replicas = append(replicas, r)
		}
		watcher := newBusyReplica(t, shared)
		h := tasks.Attach(watcher.connect(t), start(t, replicas[0].connect(t), "die").ID)
		if d := until(t, h, tasks.Failed); d.Error == nil || !strings.Contains(d.Error.Message, "5 times") {
			t.Errorf("the error is %v", d.Error)
		}
		if n := runs.count("all"); n != 3+4 { // the third run is the first of five
			t.Errorf("the handler was run %d times", n)
		}
	})
}

// newBusyReplica returns a replica that serves clients but has no free slot for a task.
func newBusyReplica(t *testing.T, shared store.Store) *replica {
	r := newReplica(t, shared, &tasks.Options{MaxRunning: 1, Lease: time.Minute}, nil)
	r.tool("hold", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) })
	start(t, r.connect(t), "hold")
	return r
}

// A task with a long TTL survives its process even if other tasks have shorter ones.
func TestListingOutlivesShortTasks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		opts := &tasks.Options{TTL: time.Minute, Lease: 10 * time.Second, MaxWorking: 10_000}
		day := &tasks.BackgroundOptions{TTL: 24 * time.Hour}
		first, second := newReplica(t, shared, opts, day), newReplica(t, shared, opts, day)
		first.tool("long", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) })
		second.tool("long", func(context.Context) (string, error) { return "done", nil })
		short := second.mux.With(second.manager.Background(nil))
		short.Tool("short", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
		c := second.connect(t)
		h := tasks.Attach(c, start(t, first.connect(t), "long").ID)
		for range 200 {
			start(t, c, "short")
		}
		<-time.After(5 * time.Hour)
		first.link.cut()
		until(t, h, tasks.Completed)
	})
}

// A client that does not read its notifications does not delay the renewal of the lease: no
// other process runs the task as well.
func TestFindingK15SlowReaderDoesNotLoseTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, runs := store.NewMemory(nil), new(ledger)
		after := &tasks.BackgroundOptions{After: time.Second}
		tool := func(ctx context.Context) (string, error) {
			runs.run("report")
			mcp.Progress(ctx, 1, 2, "half")
			<-time.After(5 * time.Second)
			return "done", nil
		}
		first, other := newReplica(t, shared, nil, after), newReplica(t, shared, nil, after)
		first.tool("report", tool)
		other.tool("report", tool)
		reading, answers := make(chan struct{}), make(chan mcp.Result, 1)
		server := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := first.mux.ServeMCP(ctx, req)
			answers <- res
			<-reading // the answer is sent after the notification
			return res, err
		})
		req := sender(nil, true).NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "report", Arguments: json.RawMessage("{}")})
		go func() {
			_, _ = core.Serve(context.Background(), server, req, slowReader(reading), slog.New(slog.DiscardHandler))
		}()
		created, ok := (<-answers).(*tasks.CreateResult) // if that waits for the reader, it waits for ever
		if !ok {
			t.Fatal("the call did not become a task")
		}
		<-time.After(time.Minute) // many leases
		close(reading)
		until(t, tasks.Attach(other.connect(t), created.ID), tasks.Completed)
		if n := runs.count("report"); n != 1 {
			t.Errorf("the handler ran %d times", n)
		}
	})
}

// A slowReader is a client that reads no notification until the channel is closed.
type slowReader <-chan struct{}

// Notify implements the notifier of a request.
func (r slowReader) Notify(context.Context, string, json.RawMessage) error {
	<-r
	return nil
}

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
		asks.tool("ask", func(ctx context.Context) (string, error) {
			<-time.After(time.Second) // the task is listed
			return tool(&asks)(ctx)
		})
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

// A task that has ended but could not be taken off the list of working tasks is taken off later,
// by a sweep of any process.
func TestStaleEntryIsRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var logged strings.Builder
		opts := &tasks.Options{PollInterval: time.Second, Lease: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
		shared := store.NewMemory(nil)
		r, other := newReplica(t, shared, opts, nil), newReplica(t, shared, nil, nil)
		r.tool("slow", func(context.Context) (string, error) { <-time.After(time.Second); return "done", nil })
		var listed atomic.Int64 // bytes of the only shard in use
		see := func(key string, value []byte) {
			if kindOf(key) == "working" {
				listed.Store(int64(len(value)))
			}
		}
		r.link.hook(nil, see)
		other.link.hook(nil, see)
		h := start(t, r.connect(t), "slow")
		r.link.set(func(op, key string) fault {
			if op == "put" && kindOf(key) == "working" {
				return fails
			}
			return works
		})
		until(t, h, tasks.Completed)
		if synctest.Wait(); listed.Load() == 0 || !strings.Contains(logged.String(), "a task was not taken off the list of working ones") {
			t.Errorf("listed are %d bytes; logged: %s", listed.Load(), &logged)
		}
		<-time.After(time.Minute)
		if synctest.Wait(); listed.Load() != 0 {
			t.Errorf("still listed are %d bytes", listed.Load())
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
		opts := &tasks.Options{TTL: time.Minute, Lease: 10 * time.Second}
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

// A process that lost a task can become its owner again while its former run still works. The
// former run can neither store its result nor end the new one, which still hears about the
// task at once.
func TestFormerRunOfTheSameProcess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		former, cancelled := make(chan struct{}), make(chan struct{})
		runs := 0
		first, other := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		first.tool("work", func(ctx context.Context) (string, error) {
			if runs++; runs == 1 {
				<-time.After(time.Second) // the task is stored
				first.link.cut()
				<-former // regardless of ctx
				return "by the former run", nil
			}
			<-ctx.Done()
			close(cancelled)
			return "", context.Cause(ctx)
		})
		other.tool("work", func(ctx context.Context) (string, error) {
			_, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return "", err
		})
		h := tasks.Attach(other.connect(t), start(t, first.connect(t), "work").ID)
		d := until(t, h, tasks.InputRequired)
		first.link.set(nil)
		answer(t, tasks.Attach(first.connect(t), h.ID), d, av1)
		synctest.Wait()
		close(former)
		synctest.Wait()
		if d := state(t, h); d.Status != tasks.Working || runs != 2 {
			t.Fatalf("after %d runs at the first process, the task is %s: %s", runs, d.Status, d.Result)
		}
		if err := h.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		<-cancelled
		if took := time.Since(begun); took > 0 {
			t.Errorf("the handler heard of the cancellation after %v", took)
		}
	})
}

// A former owner does not replace the result of the task with its own, however large they are.
func TestFormerOwnerWithALargeResult(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		first, other := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		former, ended := make(chan struct{}), make(chan struct{})
		first.tool("work", func(context.Context) (string, error) {
			defer close(ended)
			<-time.After(time.Second) // the task is stored
			first.link.cut()
			<-former
			return strings.Repeat("former ", 10_000), nil
		})
		want := strings.Repeat("latter ", 10_000)
		other.tool("work", func(context.Context) (string, error) { return want, nil })
		h := tasks.Attach(other.connect(t), start(t, first.connect(t), "work").ID)
		until(t, h, tasks.Completed)
		first.link.set(nil)
		close(former)
		<-ended
		synctest.Wait()
		if got := text(t, state(t, h)); got != want {
			t.Errorf("the result is %.20q, want %.20q", got, want)
		}
	})
}

// A process whose store fails now and then still takes over the tasks of a process that is
// gone: a sweep that cannot read the list does not make the lease begin again.
func TestTakeOverWithAnUnreliableStore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		first, other := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		sweeps := 0
		other.link.set(func(op, key string) fault {
			if op != "get" || kindOf(key) != "working" {
				return works
			}
			if strings.HasSuffix(key, "/0") {
				sweeps++
			}
			if sweeps%2 == 0 {
				return fails
			}
			return works
		})
		first.tool("work", func(ctx context.Context) (string, error) {
			<-time.After(time.Second) // the task is stored
			first.link.cut()
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		other.tool("work", func(context.Context) (string, error) { return "done", nil })
		until(t, tasks.Attach(other.connect(t), start(t, first.connect(t), "work").ID), tasks.Completed)
	})
}

// A client answers when a list entry that was not removed is about to be removed by a sweep.
// The answer makes it the entry of a new round, which stays until it has been of no use for
// the time of a lease, so that the task survives its process.
func TestAnsweredBeforeAStaleEntryIsRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const lease = 3 * time.Second
		shared := store.NewMemory(nil)
		patient := &tasks.Options{PollInterval: 100 * time.Millisecond, Lease: 10 * lease} // its store operations have time
		first, sweeper := newReplica(t, shared, patient, nil), newReplica(t, shared, nil, nil)
		sweeps := make(chan time.Time, 1000)
		sweeper.link.hook(func(op, key string) {
			if op == "get" && strings.HasSuffix(key, "working/0") {
				sweeps <- time.Now()
			}
		}, nil)
		sweepAfter := func(after time.Time) time.Time {
			at := <-sweeps
			for !at.After(after) {
				at = <-sweeps
			}
			synctest.Wait()
			return at
		}
		var answered atomic.Bool
		first.tool("ask", func(ctx context.Context) (string, error) {
			<-time.After(time.Second) // the task is listed
			_, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			if answered.Load() {
				first.link.cut()
			} else {
				first.link.set(func(op, key string) fault {
					if op == "put" && kindOf(key) == "working" {
						return fails
					}
					return works
				})
			}
			return "", err
		})
		sweeper.tool("ask", func(ctx context.Context) (string, error) {
			_, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return "done", err
		})
		h := tasks.Attach(sweeper.connect(t), start(t, first.connect(t), "ask").ID)
		d := until(t, h, tasks.InputRequired)
		seen := sweepAfter(time.Now())
		<-time.After(time.Until(seen.Add(lease * 19 / 20)))
		answered.Store(true)
		first.link.set(nil)
		stored := make(chan struct{})
		first.link.hook(func(op, key string) {
			if op == "put" && kindOf(key) == "task" {
				<-stored
			}
		}, nil)
		conn := first.connect(t)
		updated := make(chan struct{})
		go func() {
			defer close(updated)
			answer(t, tasks.Attach(conn, h.ID), d, av1)
		}()
		sweepAfter(seen.Add(lease))
		close(stored)
		<-updated
		until(t, h, tasks.Completed)
	})
}

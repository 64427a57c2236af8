// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

var quickCall = &mcp.CallToolParams{Name: "quick", Arguments: json.RawMessage("{}")}

// The number of tasks of a caller is limited until their TTL has passed. Calls that are
// rejected for other reasons do not count.
func TestMaxPerCaller(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		opts := &tasks.Options{MaxPerCaller: 3, TTL: time.Hour, PollInterval: time.Second}
		r := newReplica(t, store.NewMemory(nil), opts, nil)
		r.tool("quick", func(context.Context) (string, error) { return "", nil })
		ada, bob := r.connectAs(t, &mcp.Principal{Subject: "ada"}), r.connectAs(t, &mcp.Principal{Subject: "bob"})
		full := func(op, key string) fault {
			if op == "put" && kindOf(key) != "caller" {
				return fails
			}
			return works
		}
		r.link.set(full)
		for range 10 {
			if h, res, err := tasks.Start(t.Context(), ada, quickCall); h != nil || res == nil || err != nil {
				t.Errorf("without a store, a call is an ordinary one: %v, %v, %v", h, res, err)
			}
		}
		r.link.set(nil)
		for range 3 {
			start(t, ada, "quick")
		}
		_, _, err := tasks.Start(t.Context(), ada, quickCall)
		if after, limited := mcp.RetryAfter(err); !limited || after != time.Second {
			t.Errorf("the fourth: %v", err)
		}
		start(t, bob, "quick")
		<-time.After(time.Hour + time.Minute)
		start(t, ada, "quick")
	})
}

// The tasks of all unauthenticated callers have a separate limit, ten times that of one caller.
func TestMaxAnonymous(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxPerCaller: 32, TTL: time.Hour}, nil)
		r.tool("quick", func(context.Context) (string, error) { return "", nil })
		anonymous, ada := r.connect(t), r.connectAs(t, &mcp.Principal{Subject: "ada"})
		begun := 0
		for range 1000 {
			_, _, err := tasks.Start(t.Context(), anonymous, quickCall)
			if _, limited := mcp.RetryAfter(err); err == nil {
				begun++
			} else if !limited || !strings.Contains(err.Error(), "not authenticated") {
				t.Fatal(err)
			}
		}
		if begun < 160 || begun > 320 {
			t.Errorf("%d tasks", begun)
		}
		start(t, ada, "quick")
		<-time.After(time.Hour + time.Minute)
		start(t, anonymous, "quick")
	})
}

// The number of tasks waiting to run is limited. Tasks that run in a free slot, and tasks
// that wait for answers, are not rejected.
func TestMaxWorking(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplicaWithin(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 8}, nil, 64)
		gate := make(chan struct{})
		r.tool("quick", func(context.Context) (string, error) { <-gate; return "", nil })
		c := r.connectAs(t, &mcp.Principal{Subject: "ada"})
		begun, refused := 0, 0
		for range 500 {
			_, _, err := tasks.Start(t.Context(), c, quickCall)
			if _, limited := mcp.RetryAfter(err); limited {
				refused++
			} else if err != nil {
				t.Fatal(err)
			} else {
				begun++
			}
		}
		if begun < 32 || begun > 64+8 || refused != 500-begun {
			t.Errorf("%d tasks, %d refused", begun, refused)
		}
		close(gate)
		synctest.Wait()
		start(t, c, "quick")
	})
}

// Callers take turns: a caller with many tasks does not delay others.
func TestFairTurns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 2, Lease: time.Minute}, nil)
		var mu sync.Mutex
		var order []string
		r.tool("quick", func(ctx context.Context) (string, error) {
			mu.Lock()
			order = append(order, mcp.PrincipalFromContext(ctx).Subject)
			mu.Unlock()
			<-time.After(time.Second)
			return "", nil
		})
		greedy, modest := r.connectAs(t, &mcp.Principal{Subject: "greedy"}), r.connectAs(t, &mcp.Principal{Subject: "modest"})
		for range 50 {
			start(t, greedy, "quick")
		}
		h := start(t, modest, "quick")
		begun := time.Now()
		until(t, h, tasks.Completed)
		if wait := time.Since(begun); wait > 5*time.Second {
			t.Errorf("the modest caller waited for %v: %v", wait, order)
		}
	})
}

// A process runs a limited number of tasks concurrently, and starts the next when one has
// ended. Another process with free slots immediately takes a share of them.
func TestMaxRunning(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, ran := store.NewMemory(nil), new(ledger)
		opts := &tasks.Options{MaxRunning: 4, Lease: time.Minute}
		var running, most int
		var replicas []*replica
		for i := range 2 {
			r := newReplica(t, shared, opts, nil)
			r.tool("quick", func(context.Context) (string, error) {
				ran.mu.Lock()
				running++
				most = max(most, running)
				ran.mu.Unlock()
				ran.run(fmt.Sprint(i))
				<-time.After(time.Second)
				ran.mu.Lock()
				running--
				ran.mu.Unlock()
				return "", nil
			})
			replicas = append(replicas, r)
		}
		c := replicas[0].connect(t)
		begun := time.Now()
		var handles []*tasks.Handle
		for range 40 {
			handles = append(handles, start(t, c, "quick"))
		}
		for _, h := range handles {
			until(t, h, tasks.Completed)
		}
		if took := time.Since(begun); most > 8 || took > 15*time.Second {
			t.Errorf("at most %d at once, %v for all", most, took)
		}
		if ran.count("0")+ran.count("1") != 40 || ran.count("1") < 4 {
			t.Errorf("runs: %d and %d", ran.count("0"), ran.count("1"))
		}
	})
}

// After Shutdown, calls are served as ordinary calls.
func TestCallAfterShutdown(t *testing.T) {
	r := newReplica(t, store.NewMemory(nil), nil, nil)
	r.tool("quick", func(context.Context) (string, error) { return "", nil })
	c := r.connect(t)
	r.shutdown(t)
	if h, res, err := tasks.Start(t.Context(), c, quickCall); h != nil || res == nil || err != nil {
		t.Errorf("%v, %v, %v", h, res, err)
	}
}

// Invalid options panic where they are passed.
func TestNegativeOptions(t *testing.T) {
	for name, fn := range map[string]func(){
		"New":        func() { tasks.New("farm", &tasks.Options{MaxRunning: -1}) },
		"After":      func() { tasks.New("farm", nil).Background(&tasks.BackgroundOptions{After: -1}) },
		"TTL":        func() { tasks.New("farm", nil).Background(&tasks.BackgroundOptions{TTL: -1}) },
		"registered": func() { r := newReplica(t, store.NewMemory(nil), nil, nil); r.manager.Register(r.mux) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			fn()
		})
	}
}

// A call that ends without a task, because its client has disconnected or because its
// outcome is too large to be stored, does not count towards the limit of the caller.
func TestCallsWithoutTaskDoNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		opts := &tasks.Options{MaxPerCaller: 1, TTL: time.Hour}
		r := newReplica(t, store.NewMemory(nil), opts, nil)
		r.tool("wait", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		r.tool("work", func(context.Context) (string, error) { return "done", nil })
		c := r.connectAs(t, &mcp.Principal{Subject: "ada"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, _, err := tasks.Start(ctx, c, &mcp.CallToolParams{Name: "wait"}); err == nil {
			t.Fatal("the call was answered")
		}
		<-time.After(time.Second)
		start(t, c, "work")
	})
	inBubble(t, func(t *testing.T) {
		opts := &tasks.Options{MaxRunning: 1, MaxPerCaller: 2, TTL: time.Hour}
		r := newReplica(t, smallStore{store.NewMemory(nil)}, opts, nil)
		r.tool("wait", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		c := r.connectAs(t, &mcp.Principal{Subject: "ada"})
		start(t, c, "wait")
		large := json.RawMessage(`{"x":"` + strings.Repeat("x", 100<<10) + `"}`)
		if _, _, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "wait", Arguments: large}); mcp.CodeOf(err) != mcp.CodeTooLarge {
			t.Errorf("a large request: %v", err)
		}
		start(t, c, "wait")
	})
}

// A smallStore refuses values of more than 64 KiB.
type smallStore struct{ store.Store }

func (s smallStore) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if len(value) > 64<<10 {
		return 0, store.ErrTooLarge
	}
	return s.Store.Put(ctx, key, value, version, ttl)
}

// The state of a caller is kept as long as the tasks of any tool, not only of tools with
// the TTL of the manager.
func TestLongestTTLCounts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		opts := &tasks.Options{TTL: time.Hour, MaxPerCaller: 1, PollInterval: time.Second, Lease: time.Minute}
		r := newReplica(t, store.NewMemory(nil), opts, &tasks.BackgroundOptions{TTL: 24 * time.Hour})
		r.tool("once", func(context.Context) (string, error) { return "done", nil })
		c := r.connectAs(t, &mcp.Principal{Issuer: "i", Subject: "s"})
		until(t, start(t, c, "once"), tasks.Completed)
		<-time.After(12 * time.Hour)
		if _, _, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "once", Arguments: json.RawMessage("{}")}); err == nil {
			t.Error("a caller with a task that is kept started another one, above the bound")
		}
		<-time.After(12*time.Hour + time.Minute)
		until(t, start(t, c, "once"), tasks.Completed)
	})
}

// A task that ends normally logs nothing.
func TestNothingLogged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var logged strings.Builder
		opts := &tasks.Options{PollInterval: time.Second, Lease: time.Minute, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
		r := newReplica(t, store.NewMemory(nil), opts, nil)
		r.tool("quick", func(context.Context) (string, error) { return "done", nil })
		r.tool("slow", func(ctx context.Context) (string, error) {
			<-time.After(5 * time.Second)
			return "done", nil
		})
		c := r.connect(t)
		for _, tool := range []string{"quick", "slow"} {
			until(t, start(t, c, tool), tasks.Completed)
		}
		r.shutdown(t)
		if logged.Len() > 0 {
			t.Error(logged.String())
		}
	})
}

// A task counts for its caller as long as it is kept, up to the last fraction of a second.
func TestTaskCountsUntilItExpires(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxPerCaller: 1, TTL: time.Hour, PollInterval: time.Second}, nil)
		r.tool("quick", func(context.Context) (string, error) { return "", nil })
		ada := r.connectAs(t, &mcp.Principal{Subject: "ada"})
		<-time.After(900 * time.Millisecond)
		h := start(t, ada, "quick")
		<-time.After(time.Hour - 500*time.Millisecond)
		state(t, h)
		if _, _, err := tasks.Start(t.Context(), ada, quickCall); err == nil {
			t.Error("a second task was started while the first was kept")
		}
		<-time.After(2 * time.Second)
		start(t, ada, "quick")
	})
}

// A task that has ended occupies no memory of its process, however long it is kept in the store.
func TestEndedTaskLeavesNothing(t *testing.T) {
	type key struct{}
	r := newReplica(t, store.NewMemory(nil), nil, &tasks.BackgroundOptions{TTL: time.Hour})
	var values []weak.Pointer[[1 << 10]byte]
	r.mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				value := new([1 << 10]byte)
				values = append(values, weak.Make(value))
				ctx = context.WithValue(ctx, key{}, value)
			}
			return next.ServeMCP(ctx, req)
		})
	})
	r.tool("work", func(ctx context.Context) (string, error) {
		if _, err := mcp.Once(ctx, "step", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
		return "done", err
	})
	c := r.connect(t)
	for range 3 {
		h := start(t, c, "work")
		answer(t, h, until(t, h, tasks.InputRequired), av1)
		until(t, h, tasks.Completed)
	}
	r.shutdown(t) // all runs have returned
	for range 3 {
		runtime.GC()
	}
	left := 0
	for _, value := range values {
		if value.Value() != nil {
			left++
		}
	}
	if left > 1 { // the stack of a goroutine can still have one
		t.Errorf("the contexts of %d of %d runs are still in memory", left, len(values))
	}
}

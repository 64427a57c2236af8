// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// newBench returns a server with the same tool, with and without the Background middleware.
func newBench(b testing.TB, withTasks bool) (mux *mcp.Mux, ended chan struct{}) {
	mux, ended = mcp.NewMux("bench", "1", nil), make(chan struct{}, 1)
	var m *tasks.Manager
	if withTasks {
		m = tasks.New("bench", &tasks.Options{Store: store.NewMemory(&store.MemoryOptions{MaxBytes: 1 << 30}), TTL: 2 * time.Second, MaxPerCaller: 1 << 30})
		m.Register(mux)
		b.Cleanup(func() { _ = m.Shutdown(context.Background()) })
	}
	quick := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
	mux.Tool("ordinary", quick)
	if withTasks {
		mux.With(m.Background(nil)).Tool("task", quick)
		mux.With(m.Background(&tasks.BackgroundOptions{After: time.Minute})).Tool("after", quick)
	}
	return mux, ended
}

// The cost of a call: without a manager, next to one, until it becomes a task, and as a
// task that ends immediately, which is created and read once.
func BenchmarkCall(b *testing.B) {
	for _, bench := range []struct {
		name, tool string
		withTasks  bool
	}{{"no manager", "ordinary", false}, {"ordinary", "ordinary", true}, {"after", "after", true}, {"task", "task", true}} {
		b.Run(bench.name, func(b *testing.B) {
			mux, _ := newBench(b, bench.withTasks)
			client := sender(nil, true)
			args := map[string]any{"name": bench.tool, "arguments": map[string]any{}}
			b.ReportAllocs()
			polls := 0
			defer func() { b.ReportMetric(float64(polls)/float64(b.N), "polls/op") }()
			for b.Loop() {
				polls += callOrTask(b, mux, client, args)
			}
		})
	}
}

// callOrTask calls a tool and, if the call becomes a task, polls it until it ends.
func callOrTask(tb testing.TB, mux *mcp.Mux, client *mcptest.Client, args map[string]any) (polls int) {
	tb.Helper()
	res, _, err := mcptest.Do(tb, mux, client.NewRequest(mcp.MethodCallTool, args))
	if err != nil {
		tb.Fatal(err)
	}
	created, ok := res.(*tasks.CreateResult)
	if !ok {
		return 0
	}
	for ended := false; !ended; polls++ {
		res, _, err := mcptest.Do(tb, mux, client.NewRequest(tasks.MethodGet, map[string]any{"taskId": created.ID}))
		if err != nil {
			tb.Fatal(err)
		}
		ended = res.(*tasks.GetResult).Status == tasks.Completed
		runtime.Gosched()
	}
	return polls
}

// A task that ends immediately, including its poll, costs at most about three times as much
// as a call.
func TestBudget(t *testing.T) {
	mux, _ := newBench(t, true)
	client := sender(nil, true)
	allocs := func(tool string) float64 {
		args := map[string]any{"name": tool, "arguments": map[string]any{}}
		return testing.AllocsPerRun(200, func() { callOrTask(t, mux, client, args) })
	}
	if call, task := allocs("ordinary"), allocs("task"); task > 3.2*call { // the rest is for other goroutines
		t.Errorf("a call makes %v allocations, a task that ends at once %v", call, task)
	}
}

// The cost of 10,000 tasks that wait for answers in one process.
func BenchmarkWaiting(b *testing.B) {
	const count = 10_000
	for b.Loop() {
		r := newReplica(b, store.NewMemory(&store.MemoryOptions{MaxBytes: 1 << 30}), &tasks.Options{MaxPerCaller: 1 << 30}, nil)
		var asked atomic.Int64
		r.tool("ask", func(ctx context.Context) (string, error) {
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			asked.Add(1)
			return c.Codec, err
		})
		client := sender(nil, true)
		before, goroutines := heap(), runtime.NumGoroutine()
		args := map[string]any{"name": "ask", "arguments": json.RawMessage("{}")}
		for range count {
			if _, _, err := mcptest.Do(b, r.mux, client.NewRequest(mcp.MethodCallTool, args)); err != nil {
				b.Fatal(err)
			}
		}
		for asked.Load() < count {
			<-time.After(10 * time.Millisecond)
		}
		<-time.After(time.Second)
		b.ReportMetric(float64(heap()-before)/count, "bytes/task")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/count, "goroutines/task")
	}
}

func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

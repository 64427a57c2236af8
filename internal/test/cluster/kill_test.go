// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package cluster_test

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

var tasksFlag = flag.Int("cluster.tasks", 0, "how many tasks TestKilledProcesses runs; 0 means as many as an ordinary test may take")

const workers = 3

// TestKilledProcesses runs tasks of five steps on three processes that are killed with
// SIGKILL at random and restarted. No task is lost, none has two results, and no completed
// step runs again. The full test takes a minute or two:
//
//	go test ./internal/test/cluster -run TestKilledProcesses -v -cluster.tasks 1000
func TestKilledProcesses(t *testing.T) {
	count := *tasksFlag
	switch {
	case count > 0:
	case testing.Short():
		count = 20
	default:
		count = 60
	}
	shared := store.NewMemory(&store.MemoryOptions{MaxBytes: 1 << 30})
	c := &killed{address: serveStore(t, shared), shared: shared}
	observer := c.observe(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range workers {
		w := &worker{cluster: c}
		c.workers = append(c.workers, w)
		running.Go(func() { w.keepAlive(ctx, t) })
	}
	defer running.Wait()
	defer cancel()

	begun := time.Now()
	handles := c.startTasks(ctx, t, observer, count)
	results := map[string]string{}
	for _, h := range handles {
		results[h.ID] = awaitResult(t, h)
	}
	took := time.Since(begun)
	c.stopKilling.Store(true)
	<-time.After(3 * time.Second) // owners that were only slow return
	for _, h := range handles {
		if again := awaitResult(t, h); again != results[h.ID] {
			t.Errorf("a task has the results %q and %q", results[h.ID], again)
		}
	}
	cancel()
	running.Wait()
	c.judge(t, handles, took)
}

// observe returns a client of a server that shares the workers' tasks but runs none of
// them.
func (c *killed) observe(t *testing.T) *mcp.Conn {
	t.Helper()
	mux, manager := newServer(dialStore(t, c.address), 1)
	mux.With(manager.Background(nil)).Tool("hold", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}, nil))
	t.Cleanup(func() { _ = manager.Shutdown(context.Background()) })
	conn := mcptest.Dial(t, mcp.InProcess(mux), clientOptions())
	if h, _, err := tasks.Start(t.Context(), conn, &mcp.CallToolParams{Name: "hold", Arguments: json.RawMessage("{}")}); h == nil || err != nil {
		t.Fatal("the observer has no task:", err)
	}
	return conn
}

func clientOptions() *mcp.ClientOptions {
	return &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}, Logger: slog.New(slog.DiscardHandler)}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcpstdio"
)

// A killed is a cluster whose workers are killed repeatedly.
type killed struct {
	address string // of the store
	shared  store.Store
	workers []*worker

	stopKilling    atomic.Bool
	kills, unheard atomic.Int64
}

// A worker is a process that is restarted after it is killed.
type worker struct {
	cluster *killed

	mu   sync.Mutex
	conn *mcp.Conn // nil while the process does not run
}

func (w *worker) client() *mcp.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn
}

func (w *worker) setClient(c *mcp.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = c
}

// keepAlive repeatedly starts and kills the process until ctx is done.
func (w *worker) keepAlive(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		if err := w.runOnce(ctx); err != nil && ctx.Err() == nil {
			t.Error("a worker:", err)
			return
		}
	}
}

// runOnce runs the process for a random time and kills it.
func (w *worker) runOnce(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "psi")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "mcp")
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self)
	cmd.Env = append(os.Environ(), storeEnv+"="+w.cluster.address, socketEnv+"="+socket)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		w.setClient(nil)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	conn, err := connect(ctx, socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	w.setClient(conn)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(400+rand.IntN(3000)) * time.Millisecond):
		}
		if !w.cluster.stopKilling.Load() {
			w.cluster.kills.Add(1)
			return cmd.Process.Kill()
		}
	}
}

// connect connects to a worker that has just been started.
func connect(ctx context.Context, socket string) (conn *mcp.Conn, err error) {
	for range 1000 {
		if _, err = os.Stat(socket); err == nil {
			conn, err = mcp.NewClient("cluster", "1", clientOptions()).Connect(ctx, mcpstdio.NewSocket("unix", socket))
		}
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		<-time.After(20 * time.Millisecond)
	}
	return nil, err
}

// startTasks starts tasks at random workers and returns the handles that a client received.
// If a worker is killed during a call, it may leave a task that no client knows.
func (c *killed) startTasks(ctx context.Context, t *testing.T, observer *mcp.Conn, count int) (handles []*tasks.Handle) {
	t.Helper()
	for attempt := 0; len(handles) < count; attempt++ {
		if attempt > 100*count {
			t.Fatal("no task can be started")
		}
		conn := c.workers[rand.IntN(len(c.workers))].client()
		if conn == nil {
			<-time.After(10 * time.Millisecond)
			continue
		}
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		h, _, err := tasks.Start(call, conn, &mcp.CallToolParams{Name: "steps", Arguments: fmt.Appendf(nil, `{"task":"%d"}`, attempt)})
		cancel()
		if err != nil || h == nil {
			c.unheard.Add(1)
			<-time.After(10 * time.Millisecond)
			continue
		}
		handles = append(handles, tasks.Attach(observer, h.ID))
		<-time.After(time.Duration(rand.IntN(60)) * time.Millisecond)
	}
	return handles
}

// awaitResult waits for a task to complete and returns its result.
func awaitResult(t *testing.T, h *tasks.Handle) string {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 3*time.Minute; {
		d, err := h.Get(t.Context())
		switch {
		case err != nil:
			t.Fatalf("the task %s is lost: %v", h.ID, err)
		case d.Status == tasks.Completed && !strings.Contains(string(d.Result), `"isError":true`):
			return string(d.Result)
		case d.Status.IsFinal():
			t.Fatalf("the task %s is %s: %s %s", h.ID, d.Status, d.StatusMessage, d.Result)
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatalf("the task %s does not end", h.ID)
	return ""
}

// judge checks the ledger written by the workers.
func (c *killed) judge(t *testing.T, handles []*tasks.Handle, took time.Duration) {
	t.Helper()
	runs, begun, done, repeated := 0, 0, map[string]bool{}, 0
	lines, _, err := c.shared.Get(t.Context(), ledger)
	if err != nil {
		t.Fatal("the ledger:", err)
	}
	for line := range strings.Lines(string(lines)) {
		what, step, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "run":
			runs++
		case "begin":
			if begun++; done[step] {
				repeated++
				t.Errorf("the step %q was completed, and begins again", step)
			}
		case "done":
			done[step] = true
		}
	}
	if len(done) < steps*len(handles) {
		t.Errorf("%d steps were completed, want %d at least", len(done), steps*len(handles))
	}
	t.Logf("%d tasks in %v; %d kills, %d calls without an answer; %d runs of handlers; %d runs of steps, %d of them again because the step was not stored; %d completed steps run again",
		len(handles), took.Round(time.Second), c.kills.Load(), c.unheard.Load(), runs, begun, begun-len(done), repeated)
}

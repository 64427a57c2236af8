// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// A thousand tasks of five steps run in processes that lose the store at random times, for
// longer and shorter than their leases, and whose individual operations fail or are not
// confirmed. No task is lost or has two results, and no stored step is run again. The
// processes are managers in this one process, which share a store in memory.
func TestRandomKills(t *testing.T) {
	const steps = 5
	count := 1000
	if testing.Short() {
		count = 100
	}
	inBubble(t, func(t *testing.T) {
		k := &killing{shared: store.NewMemory(nil), done: map[string]int{}}
		var replicas []*replica
		for range 4 {
			r := newReplica(t, k.shared, &tasks.Options{PollInterval: time.Second, Lease: 5 * time.Second, MaxRunning: 200, MaxAttempts: 1000}, nil)
			r.background.Tool("steps", mcp.ToolFunc(k.steps, nil))
			replicas = append(replicas, r)
		}
		watcher := newBusyReplica(t, k.shared)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var tormented sync.WaitGroup
		for _, r := range replicas {
			tormented.Go(func() { k.torment(ctx, r) })
		}
		var handles []*tasks.Handle
		c, conns := watcher.connect(t), []*mcp.Conn{}
		for _, r := range replicas {
			conns = append(conns, r.connect(t))
		}
		for n := 0; len(handles) < count; n++ {
			params := &mcp.CallToolParams{Name: "steps", Arguments: fmt.Appendf(nil, `{"task":%d,"steps":%d}`, n, steps)}
			if h, _, err := tasks.Start(ctx, conns[n%len(conns)], params); err == nil && h != nil {
				handles = append(handles, tasks.Attach(c, h.ID))
			}
			<-time.After(10 * time.Millisecond)
		}
		results := map[string]string{}
		for _, h := range handles {
			results[h.ID] = text(t, until(t, h, tasks.Completed))
		}
		<-time.After(time.Minute) // former owners reconnect
		for _, h := range handles {
			if got := text(t, state(t, h)); got != results[h.ID] {
				t.Errorf("a task has the results %q and %q", results[h.ID], got)
			}
		}
		cancel()
		tormented.Wait()
		for _, r := range replicas {
			r.link.set(nil)
		}
		if k.repeated > 0 {
			t.Errorf("%d steps that were completed and stored were run again", k.repeated)
		}
		t.Logf("%d tasks, %d runs of handlers, %d runs of steps, %d of them again after a step that was not stored, %d losses of the store",
			len(handles), k.runs, k.total, k.total-k.stored, k.cuts)
	})
}

type killing struct {
	shared store.Store

	mu   sync.Mutex
	done map[string]int // how often Once returned the value of a step

	runs, total, stored, repeated, cuts int
}

type killed struct {
	Task  int `json:"task"`
	Steps int `json:"steps"`
}

// steps runs a task. A step is completed when Once has returned its value without an error.
func (k *killing) steps(ctx context.Context, in killed) (string, error) {
	k.add(func() { k.runs++ })
	sum := 0
	for i := range in.Steps {
		name := fmt.Sprint(in.Task, ".", i)
		value, err := mcp.Once(ctx, name, func(context.Context) (int, error) {
			k.add(func() {
				k.total++
				if k.done[name] > 0 {
					k.repeated++
				}
			})
			<-time.After(time.Duration(rand.IntN(2000)) * time.Millisecond)
			return i, nil
		})
		if err != nil {
			return "", err
		}
		k.add(func() {
			if k.done[name]++; k.done[name] == 1 {
				k.stored++
			}
		})
		sum += value
	}
	return fmt.Sprint(in.Task, ": ", sum), nil
}

func (k *killing) add(fn func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn()
}

// torment disconnects a replica from the store now and then. In between, one operation in
// fifty fails.
func (k *killing) torment(ctx context.Context, r *replica) {
	flaky := func(string, string) fault {
		if n := rand.IntN(100); n < 2 {
			return []fault{fails, unheard}[n]
		}
		return works
	}
	for ctx.Err() == nil {
		r.link.set(flaky)
		<-time.After(time.Duration(rand.IntN(15_000)) * time.Millisecond)
		k.add(func() { k.cuts++ })
		r.link.cut()
		<-time.After(time.Duration(rand.IntN(15_000)) * time.Millisecond)
	}
}

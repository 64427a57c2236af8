// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// A fault is the outcome of one store operation.
type fault int

const (
	works   fault = iota
	fails         // no effect, and the caller gets an error
	unheard       // takes effect, but the caller gets an error
	hangs         // no effect, and the call blocks until the context is done
)

var errDown = errors.New("the store is down")

// A link is the access of one process to the shared store.
type link struct {
	shared store.Store

	mu    sync.Mutex
	fault func(op, key string) fault // nil means that all operations work
	puts  map[string]int             // by the kind of key
	ops   int

	before func(op, key string)           // nil, or called before each operation
	after  func(key string, value []byte) // nil, or called after each put
}

func (l *link) set(fault func(op, key string) fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = fault
}

// hook sets functions to be called before each operation and after each put.
func (l *link) hook(before func(op, key string), after func(key string, value []byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.after = before, after
}

// cut makes all operations fail, as if the network were cut.
func (l *link) cut() { l.set(func(string, string) fault { return fails }) }

func (l *link) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault != nil && l.fault("", "") != works
}

func (l *link) counts() (puts map[string]int, ops int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	puts = map[string]int{}
	maps.Copy(puts, l.puts)
	return puts, l.ops
}

// kindOf returns the kind of a key: task, request, result, working or caller.
func kindOf(key string) string {
	parts := strings.Split(key, "/")
	return parts[min(2, len(parts)-1)]
}

func (l *link) do(ctx context.Context, op, key string, fn func() error) error {
	l.mu.Lock()
	l.ops++
	if op == "put" {
		if l.puts == nil {
			l.puts = map[string]int{}
		}
		l.puts[kindOf(key)]++
	}
	f := works
	if l.fault != nil {
		f = l.fault(op, key)
	}
	before := l.before
	l.mu.Unlock()
	if before != nil {
		before(op, key)
	}
	switch f {
	case fails:
		return errDown
	case hangs:
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if err := fn(); err != nil || f == works {
		return err
	}
	return errDown
}

func (l *link) Get(ctx context.Context, key string) (value []byte, version uint64, err error) {
	err = l.do(ctx, "get", key, func() (err error) { value, version, err = l.shared.Get(ctx, key); return err })
	return value, version, err
}

func (l *link) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (v uint64, err error) {
	err = l.do(ctx, "put", key, func() (err error) { v, err = l.shared.Put(ctx, key, value, version, ttl); return err })
	l.mu.Lock()
	after := l.after
	l.mu.Unlock()
	if after != nil && err == nil {
		after(key, value)
	}
	return v, err
}

func (l *link) Take(ctx context.Context, key string) (value []byte, err error) {
	err = l.do(ctx, "take", key, func() (err error) { value, err = l.shared.Take(ctx, key); return err })
	return value, err
}

func (l *link) Publish(ctx context.Context, topic string, message []byte) error {
	return l.do(ctx, "publish", topic, func() error { return l.shared.Publish(ctx, topic, message) })
}

func (l *link) Subscribe(ctx context.Context, topic string) (sub store.Subscription, err error) {
	err = l.do(ctx, "subscribe", topic, func() (err error) { sub, err = l.shared.Subscribe(ctx, topic); return err })
	return sub, err
}

// A replica is one process of a server, with its access to the shared store.
type replica struct {
	mux        *mcp.Mux
	manager    *tasks.Manager
	link       *link
	background *mcp.Mux // tools registered here run in the background
	key        []byte   // seals states; the same for all replicas that share the store
}

// newReplica returns a replica of a server. Nil options mean short intervals.
func newReplica(t testing.TB, shared store.Store, o *tasks.Options, b *tasks.BackgroundOptions) *replica {
	t.Helper()
	return newReplicaWithin(t, shared, o, b, 0)
}

// newReplicaWithin is newReplica with a limit on the number of working tasks. 0 means the
// constant.
func newReplicaWithin(t testing.TB, shared store.Store, o *tasks.Options, b *tasks.BackgroundOptions, working int) *replica {
	t.Helper()
	opts := tasks.Options{PollInterval: 100 * time.Millisecond, Lease: 3 * time.Second}
	if o != nil {
		opts = *o
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%p", shared))
	mux := mcp.NewMux("farm", "1", &mcp.MuxOptions{Logger: opts.Logger, StateKeys: [][]byte{key[:]}, StateStore: shared})
	r := &replica{mux: mux, link: &link{shared: shared}, key: key[:]}
	opts.Store = r.link
	r.manager = tasks.NewWithin("farm", &opts, working)
	r.manager.Register(r.mux)
	r.background = r.mux.With(r.manager.Background(b))
	t.Cleanup(func() { r.shutdown(t) })
	return r
}

func (r *replica) shutdown(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.manager.Shutdown(ctx); err != nil {
		t.Error("Shutdown:", err)
	}
}

// tool registers a tool that runs in the background.
func (r *replica) tool(name string, fn func(ctx context.Context) (string, error)) {
	r.background.Tool(name, mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) { return fn(ctx) }, nil))
}

// connect connects a client that supports the extension. It declares that it answers
// questions, but has no callbacks for them.
func (r *replica) connect(t testing.TB) *mcp.Conn { return r.connectAs(t, nil) }

func (r *replica) connectAs(t testing.TB, caller *mcp.Principal) *mcp.Conn {
	t.Helper()
	client := &mcptest.Client{Principal: caller, Options: *options()}
	return client.Connect(t, r.mux)
}

// start starts a task. It fails the test if the call does not become one.
func start(t testing.TB, c *mcp.Conn, tool string) *tasks.Handle {
	t.Helper()
	h, res, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage("{}")})
	if err != nil || h == nil {
		t.Fatalf("Start %s: %v, %v, %v", tool, h, res, err)
	}
	return h
}

// state returns the state of a task.
func state(t testing.TB, h *tasks.Handle) *tasks.DetailedTask {
	t.Helper()
	d, err := h.Get(t.Context())
	if err != nil {
		t.Fatal("tasks/get:", err)
	}
	return d
}

// until polls until the task has a status, and returns its state.
func until(t testing.TB, h *tasks.Handle, want tasks.Status) *tasks.DetailedTask {
	t.Helper()
	for range 2000 {
		d := state(t, h)
		if d.Status == want {
			return d
		}
		if d.Status.IsFinal() {
			t.Fatalf("the task is %s (%s, %s), want %s", d.Status, d.StatusMessage, d.Result, want)
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatalf("the task never becomes %s: it is %s", want, state(t, h).Status)
	return nil
}

// answer gives the same answer to all questions of a task.
func answer(t testing.TB, h *tasks.Handle, d *tasks.DetailedTask, with string) {
	t.Helper()
	answers := map[string]json.RawMessage{}
	for key := range d.InputRequests {
		answers[key] = json.RawMessage(with)
	}
	if err := h.Update(t.Context(), answers); err != nil {
		t.Fatal("tasks/update:", err)
	}
}

// text returns the text of a completed task.
func text(t testing.TB, d *tasks.DetailedTask) string {
	t.Helper()
	var r mcp.CallToolResult
	if err := json.Unmarshal(d.Result, &r); err != nil || len(r.Content) != 1 {
		t.Fatalf("the result is %s: %v", d.Result, err)
	}
	s := r.Content[0].(*mcp.TextContent).Text
	if r.IsError {
		s = "error: " + s
	}
	return s
}

// inBubble runs a test in a synctest bubble, where waiting takes no time.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// A ledger counts how often each step of a task was run.
type ledger struct {
	mu   sync.Mutex
	runs map[string]int
}

func (l *ledger) run(step string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs = map[string]int{}
	}
	l.runs[step]++
}

func (l *ledger) count(step string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[step]
}

// once runs a step with Once.
func (l *ledger) once(ctx context.Context, step string) error {
	_, err := mcp.Once(ctx, step, func(context.Context) (int, error) { l.run(step); return l.count(step), nil })
	return err
}

// repeated returns the steps that were run more than once.
func (l *ledger) repeated() (steps []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for step, n := range l.runs {
		if n > 1 {
			steps = append(steps, fmt.Sprint(step, " ×", n))
		}
	}
	return steps
}

// serve serves a request as a transport does, and records its notifications.
func serve(ctx context.Context, h mcp.Handler, req *mcp.Request, rec *mcptest.Recorder) (mcp.Result, error) {
	if rec == nil {
		rec = new(mcptest.Recorder)
	}
	return core.Serve(ctx, h, req, rec, slog.New(slog.DiscardHandler))
}

var core = mcp.Internal(seam.Key{})

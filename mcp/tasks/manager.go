// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

var core = mcp.Internal(seam.Key{})

// Options configure a [Manager]. Nil means the zero Options.
type Options struct {
	// Store holds the tasks. Replicas that share a store finish each other's tasks. Nil
	// means an in-memory store: tasks end with the process.
	Store store.Store
	// TTL is how long a task is kept after its creation, whatever its status. 0 means one
	// hour.
	TTL time.Duration
	// PollInterval is how often clients are asked to poll, and how often a new status
	// message is stored. 0 means one second.
	PollInterval time.Duration
	// Lease is how long a process that runs a task may be silent before another process
	// takes over the task. 0 means 30 seconds.
	Lease time.Duration
	// MaxAttempts is the maximum number of runs of a task if the processes that run it
	// disappear. A new value of Once and an answer count as progress and reset the count. 0
	// means 5.
	MaxAttempts int
	// MaxRunning is the maximum number of tasks that this process runs concurrently. Others
	// wait for this process or another replica. A caller, or all unauthenticated callers
	// together, cannot take all of them: some stay free for others. 0 means 64.
	MaxRunning int
	// MaxPerCaller is the maximum number of tasks kept for one authenticated caller,
	// including finished tasks. For all unauthenticated callers together, about ten times as
	// many are kept. 0 means 1000.
	MaxPerCaller int
	// MaxBytes is the maximum size, in bytes, of the tasks kept for one authenticated
	// caller, and for all unauthenticated callers together: their requests, results,
	// answers, and values of Once. Tasks of up to 2 KiB do not count. Beyond it, calls are
	// rejected, and a task whose result does not fit fails. A single result may have at most
	// 16 MiB. 0 means 12 MiB, less than a quarter of a [store.Memory] with default options.
	MaxBytes int
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Store == nil {
		opts.Store = store.NewMemory(nil)
	}
	opts.TTL = cmp.Or(opts.TTL, time.Hour)
	opts.PollInterval = cmp.Or(opts.PollInterval, time.Second)
	opts.Lease = cmp.Or(opts.Lease, 30*time.Second)
	opts.MaxAttempts = cmp.Or(opts.MaxAttempts, 5)
	opts.MaxRunning = cmp.Or(opts.MaxRunning, 64)
	opts.MaxPerCaller = cmp.Or(opts.MaxPerCaller, 1000)
	opts.MaxBytes = cmp.Or(opts.MaxBytes, 12<<20)
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

const (
	// maxWorking is the approximate maximum number of tasks, across all replicas, that are
	// running or waiting to run. Each replica reads their list, of some 50 bytes for each, when
	// it sweeps.
	maxWorking = 10_000

	// maxResult is the maximum size of a result, in bytes of JSON. A response of that size
	// is as much as clients accept by default, with what is around it.
	maxResult = 16 << 20
)

// A Manager stores tasks, runs them and serves requests about them. It must be created by
// [New] and is safe for concurrent use.
type Manager struct {
	// Lock order: run.creating, mu, watcher.mu and the lock of all registrations.

	name  string
	opts  Options
	store store.Store
	owner string // identifies this process

	maxWorking int // the constant, except in tests

	ctx    context.Context // of running tasks; cancelled by Shutdown
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	handler  *mcp.Mux        // runs tasks again; nil before Register
	running  map[string]*run // by task
	slots    int             // number of slots in use
	slotsOf  map[string]int  // number of slots that each caller has; no value is 0
	queue    queue           // tasks that wait for a slot; empty while their callers may have one
	longest  time.Duration   // the longest TTL of a task
	closed   bool
	warned   bool                             // see isServing
	watchers map[string]map[*watcher]struct{} // by task

	abandoned map[string]abandoned // by task

	done sync.WaitGroup      // the slots in use and the goroutines of Register
	seen map[string]sighting // working tasks of other processes; owned by the sweeping goroutine
}

// New returns a Manager. Replicas of one server must use the same name; other servers that
// use the same store must use another one. New panics if an option is negative.
func New(name string, opts *Options) *Manager {
	o := opts.withDefaults()
	if min(o.TTL, o.PollInterval, o.Lease) < 0 || min(o.MaxAttempts, o.MaxRunning, o.MaxPerCaller, o.MaxBytes) < 0 {
		panic("tasks: New with a negative option")
	}
	m := &Manager{
		name: name, opts: o, maxWorking: maxWorking, store: bound(o.Store, o.Lease/3), owner: rand.Text(), longest: o.TTL,
		running: map[string]*run{}, slotsOf: map[string]int{}, watchers: map[string]map[*watcher]struct{}{},
		abandoned: map[string]abandoned{}, seen: map[string]sighting{},
	}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	return m
}

// mustBeMade panics unless the Manager was created by New.
func (m *Manager) mustBeMade() {
	made.Check(m != nil && m.store != nil, "tasks: a Manager", "New")
}

// Register makes mux serve the methods of tasks and declare the extension. A Manager can be
// registered on only one mux, which must also have all tools behind [Manager.Background]:
// when a task is run again, its request passes through that mux and its middleware, which
// see a call that is answered with the task. Until [Manager.Shutdown], the Manager also
// takes over tasks that other processes have left. Register panics if the Manager is
// already registered. A mux can have several Managers, whose tasks are kept apart.
func (m *Manager) Register(mux *mcp.Mux) {
	m.mustBeMade()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handler != nil {
		panic("tasks: the Manager is registered already")
	}
	m.handler = mux
	mux.Use(m.serveMethods)
	m.done.Go(m.sweepUntilShutdown)
	m.done.Go(m.receiveHints)
}

// errShutdown is the cancellation cause of a handler whose process shuts down. The task has
// not ended.
var errShutdown = errors.New("tasks: the server shuts down; another one continues the task")

// Shutdown hands over the running tasks. It cancels the contexts of their handlers and
// waits until the handlers have returned or ctx is done. Then it gives the tasks back, even
// if their handlers have not returned, so that another replica, or this server after a
// restart, runs them again immediately. New calls are served without tasks.
func (m *Manager) Shutdown(ctx context.Context) error {
	m.mustBeMade()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel(errShutdown)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		m.done.Wait()
	}()
	select {
	case <-returned:
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	var left []*run
	for _, r := range m.running {
		left = append(left, r)
	}
	m.mu.Unlock()
	for _, r := range left {
		r.giveBack(context.WithoutCancel(ctx))
	}
	return context.Cause(ctx)
}

// isServing reports whether the Manager is registered and not shut down. The first time that
// it is not registered is logged: its tools work, but never as tasks.
func (m *Manager) isServing() bool {
	m.mu.Lock()
	isRegistered, closed, warned := m.handler != nil, m.closed, m.warned
	m.warned = m.warned || !isRegistered
	m.mu.Unlock()
	if !isRegistered && !warned {
		m.opts.Logger.Error("tasks: a call does not become a task, because the Manager is not registered; call Manager.Register with the mux of its tools", "manager", m.name)
	}
	return isRegistered && !closed
}

// longestTTL returns the longest TTL of a task.
func (m *Manager) longestTTL() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.longest
}

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
	// Store holds the tasks. Replicas that share it finish each other's tasks. Nil means a
	// store in memory: tasks end with the process.
	Store store.Store
	// TTL is how long a task is kept after it was created, whatever its state. 0 means an
	// hour.
	TTL time.Duration
	// PollInterval is how often clients are asked to poll, and how often a new status message
	// is stored. 0 means a second.
	PollInterval time.Duration
	// Lease is how long a process that runs a task may be silent before another one takes the
	// task over. 0 means 30 seconds.
	Lease time.Duration
	// MaxAttempts bounds how often a task is begun again because the process that ran it
	// disappeared. A new value of Once, and an answer, count as progress: then the count
	// begins anew. 0 means 5.
	MaxAttempts int
	// MaxRunning bounds the tasks that this process runs at the same time. Others wait for
	// it, or for another replica. 0 means 64.
	MaxRunning int
	// MaxWorking bounds, about, the tasks of all replicas that are running or wait to run: a
	// call that would have to wait is refused beyond it. 0 means 10,000. Tasks that wait for
	// answers are not counted.
	MaxWorking int
	// MaxPerCaller bounds the tasks of one authenticated caller that are kept, finished ones
	// included. 0 means 1000.
	MaxPerCaller int
	// MaxAnonymous bounds, about, the tasks that are kept of all callers together that are not
	// authenticated, finished ones included. 0 means 10,000.
	MaxAnonymous int
	// MaxResult bounds the size of a result, in bytes of JSON. 0 means 16 MiB.
	MaxResult int
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
	opts.MaxWorking = cmp.Or(opts.MaxWorking, 10_000)
	opts.MaxPerCaller = cmp.Or(opts.MaxPerCaller, 1000)
	opts.MaxAnonymous = cmp.Or(opts.MaxAnonymous, 10_000)
	opts.MaxResult = cmp.Or(opts.MaxResult, 16<<20)
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// A Manager keeps tasks, runs them and answers questions about them. It is safe for
// concurrent use. It must be made by [New].
type Manager struct {
	// Lock order: that by which a run is created, mu, then that of a watcher.

	name  string
	opts  Options
	store store.Store
	owner string // this process

	ctx    context.Context // of tasks that run; ends with Shutdown
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	handler  *mcp.Mux        // runs tasks again; nil before Register
	running  map[string]*run // by task
	slots    int             // taken by runs
	queue    queue           // of tasks that wait for a slot; empty while one is free
	longest  time.Duration   // the longest TTL of a task
	closed   bool
	watchers map[string]map[*watcher]struct{} // by task

	abandoned map[string]abandoned // by task

	done sync.WaitGroup      // the slots that are taken, and the goroutines of Register
	seen map[string]sighting // of working tasks that other processes run; of the goroutine that sweeps
}

// New returns a manager. Replicas of one server have the same name, other servers that use
// the same store another one. It panics if a limit is negative.
func New(name string, opts *Options) *Manager {
	o := opts.withDefaults()
	if min(o.TTL, o.PollInterval, o.Lease) < 0 || min(o.MaxAttempts, o.MaxRunning, o.MaxWorking, o.MaxPerCaller, o.MaxAnonymous, o.MaxResult) < 0 {
		panic("tasks: New with a negative option")
	}
	m := &Manager{
		name: name, opts: o, store: bound(o.Store, o.Lease/3), owner: rand.Text(), longest: o.TTL,
		running: map[string]*run{}, watchers: map[string]map[*watcher]struct{}{},
		abandoned: map[string]abandoned{}, seen: map[string]sighting{},
	}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	return m
}

// mustBeMade panics if New did not make the manager.
func (m *Manager) mustBeMade() {
	made.Check(m != nil && m.store != nil, "tasks: a Manager", "New")
}

// Register has mux serve the methods of tasks and declare the extension. A manager can be
// registered on one mux only, on which also all tools behind [Manager.Background] must be:
// when a task is run again, its request goes through that mux and its middleware, which see a
// call that is answered with the task. Register starts to take over tasks that other processes
// have left, until [Manager.Shutdown].
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

// errShutdown is the cause of the context of a handler whose process shuts down. The task
// is not over.
var errShutdown = errors.New("tasks: the server shuts down; another one continues the task")

// Shutdown hands the running tasks over: it cancels the contexts of their handlers and waits
// until they have returned or ctx is done. Then it gives the tasks back, whether their
// handlers have returned or not, so that another replica, or this server after a restart,
// runs them again at once. New calls are served without tasks.
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

// isServing reports whether Register was called and Shutdown was not.
func (m *Manager) isServing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.handler != nil && !m.closed
}

// longestTTL returns the longest time for which a task is kept.
func (m *Manager) longestTTL() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.longest
}

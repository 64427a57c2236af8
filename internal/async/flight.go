// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// A Flight runs at most one execution for each key at a time. The zero Flight is ready
// to use. A Flight must not be copied after first use. It is safe for concurrent use.
type Flight[K comparable, V any] struct {
	// Detached makes executions continue when all callers have left, so that later
	// callers join them. Without it, the context of an execution is cancelled when its
	// last caller leaves, and the next caller starts a new execution. Set it before
	// first use.
	Detached bool

	mu    sync.Mutex
	calls map[K]*call[V]
}

// A call is one execution. An execution ends with its last caller if it can be repeated; key
// sets and refreshed tokens are fetched to the end, because the attempt is used up.
type call[V any] struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when value and err are set
	value  V
	err    error

	waiting int // callers; guarded by Flight.mu
}

// Do returns the result of the execution in flight for key. If there is none, it starts fn
// on a new goroutine. The context of fn has the values of ctx, but not its cancellation or
// deadline. If ctx is done first, Do returns its [context.Cause].
//
// If fn panics, Do returns a [*PanicError]. If fn calls [runtime.Goexit], Do returns [ErrGoexit].
func (g *Flight[K, V]) Do(ctx context.Context, key K, fn func(context.Context) (V, error)) (V, error) {
	g.mu.Lock()
	c := g.join(ctx, key, fn)
	c.waiting++
	g.mu.Unlock()
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		g.leave(key, c)
		var zero V
		return zero, context.Cause(ctx)
	}
}

// Start starts fn like Do, but does not wait for the result. It does nothing if an
// execution is in flight for key. It is meant for a detached Flight.
func (g *Flight[K, V]) Start(ctx context.Context, key K, fn func(context.Context) (V, error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.join(ctx, key, fn)
}

// join returns the call for key, starting it if necessary. g.mu must be held.
func (g *Flight[K, V]) join(ctx context.Context, key K, fn func(context.Context) (V, error)) *call[V] {
	if c := g.calls[key]; c != nil {
		return c
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // run cancels it, or the last caller that leaves
	c := &call[V]{cancel: cancel, done: make(chan struct{})}
	if g.calls == nil {
		g.calls = map[K]*call[V]{}
	}
	g.calls[key] = c
	go g.run(ctx, key, c, fn) // ends with fn
	return c
}

func (g *Flight[K, V]) run(ctx context.Context, key K, c *call[V], fn func(context.Context) (V, error)) {
	c.err = ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			c.err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		c.cancel()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.forget(key, c)
		close(c.done)
	}()
	c.value, c.err = fn(ctx)
}

// leave stops waiting for c, and cancels it if no other caller is waiting.
func (g *Flight[K, V]) leave(key K, c *call[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.waiting--; c.waiting == 0 && !g.Detached {
		g.forget(key, c)
		c.cancel()
	}
}

// forget makes the next caller start a new execution. g.mu must be held.
func (g *Flight[K, V]) forget(key K, c *call[V]) {
	if g.calls[key] == c { // not the successor of an abandoned call
		delete(g.calls, key)
	}
}

// ErrGoexit reports that an execution ended its goroutine with [runtime.Goexit].
var ErrGoexit = errors.New("async: the execution ended its goroutine")

// A PanicError reports the panic of an execution to its callers on other goroutines.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error returns the value and the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%v\n\non another goroutine:\n%s", e.Value, e.Stack)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"sync"

	"github.com/go-psi/psi/mcp"
)

var errShutdown = mcp.Errorf(mcp.CodeInternalError, "the server is shutting down")

// Shutdown stops the handler gracefully. It refuses new requests, ends subscriptions and
// the streams of sessions, and waits for the requests in flight; a request whose body
// has not arrived is not in flight. If ctx is done before they have ended, Shutdown
// cancels them and returns ctx's error.
//
// Call it before http.Server.Shutdown, or at the same time, which would otherwise wait
// for streams forever. It may be called more than once.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.mustBeMade()
	drained := h.requests.drain()
	h.close(mcp.ErrClosed)
	h.sessions.endListeners()
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = ctx.Err()
	}
	h.kill(mcp.ErrClosed)
	h.sessions.closeAll()
	return err
}

// tracker counts work in flight, so that one can wait for its end. The zero tracker is
// ready to use.
type tracker struct {
	mu      sync.Mutex
	active  int
	drained chan struct{} // nil before drain; closed once when nothing is in flight after it
	idle    bool          // drained is closed
}

// enter starts a piece of work, which leave must end. It reports false after drain.
func (t *tracker) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drained != nil {
		return false
	}
	t.active++
	return true
}

func (t *tracker) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active--
	t.closeIfDrainedLocked()
}

// count returns how much work is in flight.
func (t *tracker) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active
}

// outside calls f, which the caller's piece of work is not waited for during: f may wait
// for the work of others to end.
func (t *tracker) outside(f func()) {
	t.leave()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.active++
	}()
	f()
}

// drain lets no work start any more. The channel is closed when nothing is in flight.
func (t *tracker) drain() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drained == nil {
		t.drained = make(chan struct{})
		t.closeIfDrainedLocked()
	}
	return t.drained
}

func (t *tracker) closeIfDrainedLocked() {
	if t.drained != nil && t.active == 0 && !t.idle {
		t.idle = true
		close(t.drained)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package drain

import "sync"

// A Tracker counts work in flight. The zero Tracker is ready to use. Its methods are safe
// for concurrent use.
type Tracker struct {
	mu      sync.Mutex
	active  int
	drained chan struct{} // nil before Drain; closed once when nothing is in flight after it
	idle    bool          // drained is closed
}

// Enter starts a piece of work, which Leave must end. It reports false after Drain.
func (t *Tracker) Enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drained != nil {
		return false
	}
	t.active++
	return true
}

// Leave ends a piece of work.
func (t *Tracker) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active--
	t.closeIfDrainedLocked()
}

// Count returns how much work is in flight.
func (t *Tracker) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active
}

// Outside calls f, which the caller's piece of work is not waited for during: f may wait
// for the work of others to end.
func (t *Tracker) Outside(f func()) {
	t.Leave()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.active++
	}()
	f()
}

// Drain lets no work start any more. The channel is closed when nothing is in flight.
func (t *Tracker) Drain() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drained == nil {
		t.drained = make(chan struct{})
		t.closeIfDrainedLocked()
	}
	return t.drained
}

func (t *Tracker) closeIfDrainedLocked() {
	if t.drained != nil && t.active == 0 && !t.idle {
		t.idle = true
		close(t.drained)
	}
}

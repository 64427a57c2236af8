// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async

import (
	"sync"
	"sync/atomic"
)

// A Tracker counts work in flight. The zero Tracker is ready to use. Its methods are safe
// for concurrent use.
type Tracker struct {
	active  atomic.Int64 // the work in flight, plus draining after Drain
	once    sync.Once    // makes drained, before draining is added
	idle    sync.Once    // closes drained
	drained chan struct{}
}

// draining is larger than any possible amount of work.
const draining = 1 << 62

// Enter starts a piece of work, which must end with Leave. It returns false after Drain.
func (t *Tracker) Enter() bool {
	if t.active.Add(1) < draining {
		return true
	}
	t.Leave()
	return false
}

// Leave ends a piece of work.
func (t *Tracker) Leave() {
	if t.active.Add(-1) == draining {
		t.closeDrained()
	}
}

// Count returns the amount of work in flight.
func (t *Tracker) Count() int { return int(t.active.Load() % draining) }

// Outside calls f without counting the caller's piece of work, so that f may wait for other
// work to end.
func (t *Tracker) Outside(f func()) {
	t.Leave()
	defer t.active.Add(1)
	f()
}

// Drain prevents new work from starting. The channel is closed when no work is in flight.
func (t *Tracker) Drain() <-chan struct{} {
	t.once.Do(func() {
		t.drained = make(chan struct{})
		if t.active.Add(draining) == draining {
			t.closeDrained()
		}
	})
	return t.drained
}

func (t *Tracker) closeDrained() { t.idle.Do(func() { close(t.drained) }) }

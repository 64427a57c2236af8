// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import "sync"

// tracker counts what is going on, until it is told to let nothing more begin.
type tracker struct {
	mu     sync.Mutex
	active int
	idle   chan struct{} // closed when active is 0 after refuse; nil before
}

// enter reports whether something may begin; leave must follow.
func (t *tracker) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle != nil {
		return false
	}
	t.active++
	return true
}

func (t *tracker) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active--
	if t.active == 0 && t.idle != nil {
		close(t.idle)
	}
}

// refuse lets nothing more begin, and returns what is closed when all has ended.
func (t *tracker) refuse() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle == nil {
		t.idle = make(chan struct{})
		if t.active == 0 {
			close(t.idle)
		}
	}
	return t.idle
}

func (t *tracker) refusing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.idle != nil
}

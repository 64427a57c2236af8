// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"sync"
	"time"
)

// repeater calls a function again and again. It costs no goroutine while it
// waits.
type repeater struct {
	interval time.Duration
	fn       func()

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// every starts a repeater. An interval that is not positive means never.
func every(interval time.Duration, fn func()) *repeater {
	r := &repeater{interval: interval, fn: fn}
	if interval > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.timer = time.AfterFunc(interval, r.fire)
	}
	return r
}

func (r *repeater) fire() {
	r.fn()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.timer.Reset(r.interval)
	}
}

// stop ends it. The function may be running, but is not called any more.
func (r *repeater) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

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
	of       beater

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// beater is what has a heartbeat.
type beater interface{ heartbeat() }

// every starts a repeater. An interval that is not positive means never.
func every(interval time.Duration, of beater) *repeater {
	r := new(repeater)
	r.start(interval, of)
	return r
}

func (r *repeater) start(interval time.Duration, of beater) {
	if interval <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interval, r.of = interval, of
	r.timer = time.AfterFunc(interval, r.fire)
}

func (r *repeater) fire() {
	r.of.heartbeat()
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

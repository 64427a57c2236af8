// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package callclock

import (
	"context"
	"sync"
	"time"
)

// A Clock calls a function when a time has passed, unless it is reset, paused or stopped
// before. It is safe for concurrent use.
type Clock struct {
	timeout time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	paused  int // how many pauses have not been resumed
	stopped bool
}

// Start starts a clock that calls expired after timeout, in a goroutine of its own.
func Start(timeout time.Duration, expired func()) *Clock {
	return &Clock{timeout: timeout, timer: time.AfterFunc(timeout, expired)}
}

// Reset starts the time anew, unless the clock is paused or stopped.
func (c *Clock) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused == 0 && !c.stopped {
		c.timer.Reset(c.timeout)
	}
}

// Pause stops the time until resume is called, which starts it anew. Pauses may overlap:
// the time starts when all of them have been resumed.
func (c *Clock) Pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused++
	c.timer.Stop()
	return sync.OnceFunc(func() {
		c.mu.Lock()
		c.paused--
		c.mu.Unlock()
		c.Reset()
	})
}

// Stop stops the clock for good.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}

type clockKey struct{}

// NewContext returns the context of a request with a clock.
func NewContext(ctx context.Context, c *Clock) context.Context {
	return context.WithValue(ctx, clockKey{}, c)
}

// FromContext returns the clock of a request, nil if it has none.
func FromContext(ctx context.Context) *Clock {
	c, _ := ctx.Value(clockKey{}).(*Clock)
	return c
}

// Pause pauses the clock of a request until resume is called; see [Clock.Pause]. It is for
// waiting for something other than the server, such as a user who logs in.
func Pause(ctx context.Context) (resume func()) {
	if c := FromContext(ctx); c != nil {
		return c.Pause()
	}
	return func() {}
}

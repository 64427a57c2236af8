// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package callclock

import (
	"context"
	"sync"
	"time"
)

// A Clock calls a function after a timeout, unless it is reset, paused or stopped first. It
// is safe for concurrent use. A login can take longer than the timeout of the call that needs
// it, so it pauses the clock.
type Clock struct {
	timeout time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	paused  int // number of pauses that have not been resumed
	broken  bool
	stopped bool
}

// Start starts a clock that calls expired after timeout, on its own goroutine.
func Start(timeout time.Duration, expired func()) *Clock {
	return &Clock{timeout: timeout, timer: time.AfterFunc(timeout, expired)}
}

// Reset restarts the timeout, unless the clock is paused or stopped.
func (c *Clock) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused == 0 && !c.stopped {
		c.timer.Reset(c.timeout)
	}
}

// Pause pauses the clock until resume is called, which restarts the timeout. Pauses may
// overlap: the timeout restarts when all of them have been resumed.
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

// Stop stops the clock permanently.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}

type clockKey struct{}

// NewContext returns a context that carries the clock of a request.
func NewContext(ctx context.Context, c *Clock) context.Context {
	return context.WithValue(ctx, clockKey{}, c)
}

// FromContext returns the clock of a request, or nil if it has none.
func FromContext(ctx context.Context) *Clock {
	c, _ := ctx.Value(clockKey{}).(*Clock)
	return c
}

// Pause pauses the clock of a request until resume is called; see [Clock.Pause]. It is for
// waiting for something other than the server, such as a user who logs in.
func Pause(ctx context.Context) (resume func()) {
	c := FromContext(ctx)
	if c == nil {
		return func() {}
	}
	resumeClock := c.Pause()
	return func() {
		if ctx.Err() != nil {
			c.mu.Lock()
			c.broken = true
			c.mu.Unlock()
		}
		resumeClock()
	}
}

// EndedPaused reports whether the context of the request ended while its clock was paused: the
// server was not to blame.
func (c *Clock) EndedPaused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused > 0 || c.broken
}

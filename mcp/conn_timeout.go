// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

type (
	clockKey struct{} // of the clock that progress resets
	pauseKey struct{} // of the clock that PauseTimeout stops
)

// callClock ends what takes too long.
type callClock struct {
	timeout time.Duration

	mu     sync.Mutex
	timer  *time.Timer
	paused int
	ended  bool
}

func startClock(timeout time.Duration, over func()) *callClock {
	return &callClock{timeout: timeout, timer: time.AfterFunc(timeout, over)}
}

func clockFrom(ctx context.Context) *callClock {
	clock, _ := ctx.Value(clockKey{}).(*callClock)
	return clock
}

// reset begins the time anew.
func (c *callClock) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused == 0 && !c.ended {
		c.timer.Reset(c.timeout)
	}
}

func (c *callClock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused++
	c.timer.Stop()
}

func (c *callClock) resume() {
	c.mu.Lock()
	c.paused--
	c.mu.Unlock()
	c.reset()
}

func (c *callClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.timer.Stop()
}

// PauseTimeout stops the clock by which a client bounds how long a server may take
// to answer, [ClientOptions].ProbeTimeout or CallTimeout, until resume is called, when
// it begins anew. It is for transports and middleware that wait, during a request,
// for something else than the server: a person who logs in. MaxCallTime and the
// deadline of the caller's own context hold all the same.
func PauseTimeout(ctx context.Context) (resume func()) {
	clock, _ := ctx.Value(pauseKey{}).(*callClock)
	if clock == nil {
		return func() {}
	}
	clock.pause()
	return sync.OnceFunc(clock.resume)
}

// withConnectClock is the context of connecting.
func withConnectClock(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	if timeout < 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	clock := startClock(timeout, func() { cancel(&TimeoutError{MethodDiscover + " or " + legacyInitialize, timeout}) })
	return context.WithValue(ctx, pauseKey{}, clock), func() {
		clock.stop()
		cancel(nil)
	}
}

// restartClock begins the time of connecting anew.
func restartClock(ctx context.Context) {
	if clock, ok := ctx.Value(pauseKey{}).(*callClock); ok {
		clock.reset()
	}
}

// A TimeoutError is the error of a call that took longer than the client allows. It
// was made here, not by the server.
type TimeoutError struct {
	Method string
	After  time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("mcp: no answer to %s within %v", e.Method, e.After)
}

// Timeout reports true, as that of net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// Is makes errors.Is(err, context.DeadlineExceeded) true.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// bounded is the context of a call of a client that bounds its calls.
func (c *Conn) bounded(ctx context.Context, method string) (context.Context, func()) {
	o := &c.client.opts
	if o.CallTimeout <= 0 && o.MaxCallTime <= 0 || method == MethodListen {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	over := func(after time.Duration) func() { return func() { cancel(&TimeoutError{method, after}) } }
	stop := func() {}
	if o.MaxCallTime > 0 {
		timer := time.AfterFunc(o.MaxCallTime, over(o.MaxCallTime))
		stop = func() { timer.Stop() }
	}
	if o.CallTimeout <= 0 {
		return ctx, func() {
			stop()
			cancel(nil)
		}
	}
	clock := startClock(o.CallTimeout, over(o.CallTimeout))
	c.mu.Lock()
	c.clocks[clock] = struct{}{}
	c.mu.Unlock()
	ctx = context.WithValue(context.WithValue(ctx, clockKey{}, clock), pauseKey{}, clock)
	return ctx, func() {
		c.mu.Lock()
		delete(c.clocks, clock)
		c.mu.Unlock()
		clock.stop()
		stop()
		cancel(nil)
	}
}

// pauseCalls stops the clocks of all calls that wait now, until resume is called.
func (c *Conn) pauseCalls() (resume func()) {
	c.mu.Lock()
	clocks := slices.Collect(maps.Keys(c.clocks))
	c.mu.Unlock()
	for _, clock := range clocks {
		clock.pause()
	}
	return func() {
		for _, clock := range clocks {
			clock.resume()
		}
	}
}

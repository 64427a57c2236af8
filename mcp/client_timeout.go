// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/internal/callclock"
)

// A TimeoutError is the error of a call that took longer than the client allows. The
// client made it, not the server.
type TimeoutError struct {
	Method string
	After  time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("mcp: no answer to %s within %v", e.Method, e.After)
}

// Timeout returns true, as the Timeout method of net.Error does for timeouts.
func (e *TimeoutError) Timeout() bool { return true }

// Is makes errors.Is(err, context.DeadlineExceeded) true.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// withClock returns a context that is cancelled when no answer to the method comes in
// time. Stop releases it.
func withClock(ctx context.Context, method string, timeout time.Duration) (_ context.Context, clock *callclock.Clock, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	clock = callclock.Start(timeout, func() { cancel(&TimeoutError{method, timeout}) })
	return callclock.NewContext(ctx, clock), clock, func() {
		clock.Stop()
		cancel(nil)
	}
}

// withConnectTimeout returns the context of connecting.
func withConnectTimeout(ctx context.Context, timeout time.Duration) (_ context.Context, stop func()) {
	if timeout < 0 {
		return ctx, func() {}
	}
	ctx, _, stop = withClock(ctx, firstMethods, timeout)
	return ctx, stop
}

// noAnswerError returns the error of connecting to a server that has not answered in time:
// it wraps cause, and says what was tried, for how long, and what is known of the server. Any
// other cause, such as a cancellation, is returned unchanged.
func noAnswerError(cause error, after time.Duration, peer string) error {
	if !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	peer = cmp.Or(peer, "the server")
	if ours, ok := errors.AsType[*TimeoutError](cause); ok {
		return &PrivateError{Public: notAvailable, Err: fmt.Errorf("%w from %s", ours, peer)}
	}
	err := fmt.Errorf("mcp: Connect: %w: no answer to %s in %v from %s", cause, firstMethods, after.Round(time.Millisecond), peer)
	return &PrivateError{Public: notAvailable, Err: err}
}

// withCallTimeout returns the context of a call, which ends after ClientOptions.CallTimeout.
// Subscriptions have no timeout.
func (c *Conn) withCallTimeout(ctx context.Context, method string) (_ context.Context, stop func()) {
	timeout := c.client.opts.CallTimeout
	if timeout <= 0 || method == MethodListen {
		return ctx, func() {}
	}
	ctx, clock, stopClock := withClock(ctx, method, timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clocks[clock] = struct{}{}
	return ctx, func() {
		c.mu.Lock()
		delete(c.clocks, clock)
		c.mu.Unlock()
		stopClock()
	}
}

// ErrNoAnswer is the error of a connection whose server has stopped answering; see
// [ClientOptions].KeepAlive.
var ErrNoAnswer = errors.New("mcp: the server does not answer")

// keepAlive pings the server until the connection ends. It closes the connection if
// several pings in a row remain unanswered.
func (c *Conn) keepAlive(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for misses := 0; misses < maxMisses; {
		select {
		case <-c.ctx.Done():
			return
		case <-c.wire.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(c.ctx, interval)
		err := c.ping(ctx)
		cancel()
		if err == nil {
			misses = 0
		} else {
			misses++
		}
	}
	c.client.opts.Logger.Warn("mcp: the server does not answer; closing the connection", "pings", maxMisses)
	c.noAnswer.Store(true)
	_ = c.Close() // Err returns ErrNoAnswer
}

// maxMisses is how many pings in a row may go unanswered.
const maxMisses = 3

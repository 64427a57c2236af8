// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-psi/psi/internal/callclock"
)

// A TimeoutError is returned for a call that exceeds the client's timeout. It is created by
// the client, not sent by the server.
type TimeoutError struct {
	Method string
	After  time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("no answer to %s within %v", e.Method, e.After)
}

// Timeout returns true. It is the Timeout method of net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// Is reports whether target is context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// withClock returns a context that is cancelled if the method is not answered in time. stop
// releases its resources.
func withClock(ctx context.Context, method string, timeout time.Duration) (_ context.Context, clock *callclock.Clock, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	clock = callclock.Start(timeout, func() { cancel(&TimeoutError{method, timeout}) })
	return callclock.NewContext(ctx, clock), clock, func() {
		clock.Stop()
		cancel(nil)
	}
}

// withConnectTimeout returns the context for connecting. A negative timeout means no limit.
func withConnectTimeout(ctx context.Context, timeout time.Duration) (_ context.Context, stop func()) {
	if timeout < 0 {
		timeout = math.MaxInt64
	}
	ctx, _, stop = withClock(ctx, firstMethods, timeout)
	return ctx, stop
}

// noAnswerError returns the error of connecting to a server that did not answer until ctx was
// done, or whose user did not log in. It wraps the cause and says what was tried, for how long,
// and what is known about the server. Any other cause, such as a cancellation, is returned
// unchanged.
func noAnswerError(ctx context.Context, after time.Duration, peer string) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	peer = cmp.Or(peer, "the server")
	if callclock.FromContext(ctx).EndedPaused() {
		err := fmt.Errorf("mcp: Connect: %w: the login at %s was not completed in %v", cause, peer, after.Round(time.Millisecond))
		return &PrivateError{Public: notAvailable, Err: err}
	}
	if ours, ok := errors.AsType[*TimeoutError](cause); ok {
		return &PrivateError{Public: notAvailable, Err: fmt.Errorf("%w from %s", ours, peer)}
	}
	err := fmt.Errorf("mcp: Connect: %w: no answer to %s in %v from %s", cause, firstMethods, after.Round(time.Millisecond), peer)
	return &PrivateError{Public: notAvailable, Err: err}
}

// withCallTimeout returns the context for a call, which is cancelled after
// ClientOptions.CallTimeout. Subscriptions have no timeout.
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

// ErrNoAnswer is the error of a connection whose server stopped answering pings; see
// [ClientOptions].KeepAlive.
var ErrNoAnswer = errors.New("mcp: the server does not answer")

// keepAlive pings the server until the connection ends. If maxMissedPings consecutive pings
// are not answered, it closes the connection.
func (c *Conn) keepAlive(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for misses := 0; misses < maxMissedPings; {
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
	c.client.opts.Logger.Warn("mcp: the server does not answer; closing the connection", "pings", maxMissedPings)
	c.noAnswer.Store(true)
	_ = c.Close() // Err returns ErrNoAnswer
}

// maxMissedPings is the number of consecutive unanswered pings after which the connection is
// closed.
const maxMissedPings = 3

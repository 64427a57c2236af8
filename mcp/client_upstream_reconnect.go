// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// ReconnectOptions configure an [Upstream]. Nil means the zero ReconnectOptions.
type ReconnectOptions struct {
	// MinDelay and MaxDelay bound the pause before the next attempt to connect. It doubles
	// with each attempt that fails and each connection that lasts less than MaxDelay, and
	// is shortened at random by up to half, so that clients do not come back all at once.
	// 0 means 500 milliseconds and 1 minute.
	MinDelay, MaxDelay time.Duration
	// MaxDowntime bounds how long connecting is tried without a connection that lasts at
	// least MaxDelay. The Upstream gives up then. 0 means 24 hours, a negative value no
	// bound.
	MaxDowntime time.Duration
	// Wait is how long calls wait for a connection, counted from the moment when the last
	// one was lost, or from the call of [Client.Maintain]. After that they fail at once until
	// there is a connection. So a short restart of the server goes unnoticed, and calls to
	// a server that is down fail quickly. 0 means 3 seconds; a negative value means that
	// calls never wait.
	Wait time.Duration
	// Retry reports whether to try again after an error of connecting. Nil means after
	// every error but [ErrUnauthorized], because a login may involve the user.
	Retry func(err error) bool
	// Connected is called with each new connection before it is used, for example to add
	// middleware to it. An error closes the connection and counts as a failed attempt. The
	// function must not close the Upstream. It may be nil.
	Connected func(ctx context.Context, c *Conn) error
	// StateChanged is called after each change of the state, one call at a time. Of several
	// changes that wait while it runs, the oldest may be dropped. It may be nil; changes are
	// logged in any case.
	StateChanged func(UpstreamState)
	// Logger receives diagnostic messages. Nil means that of the client. Use
	// [slog.Logger.With] to tell several servers apart.
	Logger *slog.Logger
}

func (o *ReconnectOptions) withDefaults(c *Client) ReconnectOptions {
	opts := *orEmpty(o)
	opts.MinDelay = cmp.Or(max(opts.MinDelay, 0), 500*time.Millisecond)
	opts.MaxDelay = max(cmp.Or(opts.MaxDelay, time.Minute), opts.MinDelay)
	opts.MaxDowntime = limit(opts.MaxDowntime, 24*time.Hour, math.MaxInt64)
	opts.Wait = cmp.Or(opts.Wait, 3*time.Second)
	if opts.Retry == nil {
		opts.Retry = func(err error) bool { return !errors.Is(err, ErrUnauthorized) }
	}
	opts.Logger = cmp.Or(opts.Logger, c.opts.Logger)
	return opts
}

// Maintain returns an [Upstream], which connects to a server, and connects again whenever
// the connection has ended: a command is started again. It does not wait for the first
// connection. The Upstream lasts until ctx is done, [Upstream.Close] is called, or it
// gives up. opts may be nil.
//
// Set [ClientOptions].KeepAlive, so that a server which stops answering is noticed. Maintain
// panics if t is nil.
func (c *Client) Maintain(ctx context.Context, t transport.Transport, opts *ReconnectOptions) *Upstream {
	c.mustBeMade()
	if t == nil {
		panic("mcp: Maintain: the transport is nil; " + makeTransport)
	}
	u := &Upstream{client: c, transport: t, opts: opts.withDefaults(c), ended: make(chan struct{}), changed: make(chan struct{})}
	u.state.Since = time.Now()
	u.reports = newSerialQueue(maxReports, func(v any) { _ = logPanic(u.opts.Logger, v) })
	u.reports.dropOldest = true
	ctx, u.cancel = context.WithCancelCause(ctx)
	go u.run(ctx)
	return u
}

// maxReports bounds the changes of the state that wait to be reported.
const maxReports = 16

// run connects again and again. It is the goroutine of the Upstream.
func (u *Upstream) run(ctx context.Context) {
	defer close(u.ended)
	delay, lasting := u.opts.MinDelay, time.Now()
	for {
		lasted, err := u.connectOnce(ctx)
		if lasted >= u.opts.MaxDelay {
			delay, lasting = u.opts.MinDelay, time.Now()
		}
		switch {
		case ctx.Err() != nil:
			u.close(context.Cause(ctx))
			return
		case lasted == 0 && !u.opts.Retry(err):
			u.close(fmt.Errorf("mcp: connecting is not tried again: %w", err))
			return
		case time.Since(lasting) >= u.opts.MaxDowntime:
			u.close(fmt.Errorf("mcp: gave up after %v without a lasting connection: %w", u.opts.MaxDowntime, err))
			return
		}
		shortened := delay - rand.N(delay/2+1) //nolint:gosec // jitter is no secret
		u.pausing(err, lasted == 0, shortened)
		_ = pause.For(ctx, shortened) // connecting fails at once if ctx is done
		u.trying()
		if ctx.Err() == nil {
			trace(traceOf(ctx).Reconnect, mcptrace.ReconnectInfo{Kind: "connection", Err: err})
		}
		delay = min(2*delay, u.opts.MaxDelay)
	}
}

// connectOnce connects, and waits until the connection has ended. It returns how long it
// lasted, 0 if there was none, and why it ended or could not be made.
func (u *Upstream) connectOnce(ctx context.Context) (lasted time.Duration, err error) {
	conn, err := u.client.Connect(ctx, u.transport)
	if err != nil {
		return 0, err
	}
	conn.Use(closeStale(conn))
	if u.opts.Connected != nil {
		if err := callSafely(u.opts.Logger, func() error { return u.opts.Connected(ctx, conn) }); err != nil {
			_ = conn.Close()
			return 0, err
		}
	}
	start := time.Now()
	u.connected(conn)
	select {
	case <-conn.ctx.Done(): // it is being closed, which may take a while
	case <-conn.Done():
	case <-ctx.Done():
	}
	if err = conn.Err(); err == nil {
		err = ErrClosed
	}
	u.lost(err)
	select {
	case <-conn.Done():
	case <-ctx.Done():
	}
	u.closing = conn.Close()
	return max(time.Since(start), 1), err
}

// closeStale returns middleware that closes a connection to a server that no longer speaks
// what was negotiated, because another program answers at its address: a new connection
// finds out what that speaks.
func closeStale(conn *Conn) Middleware {
	return func(next Handler) Handler {
		return HandlerFunc(func(ctx context.Context, req *Request) (Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if errors.Is(err, ErrSessionLost) || errors.Is(err, transport.ErrNotUnderstood) || CodeOf(err) == CodeUnsupportedVersion {
				go conn.Close() // which waits for what the transport does, but not for long
			}
			return res, err
		})
	}
}

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
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// UpstreamOptions configure an [Upstream]. Nil means the zero UpstreamOptions.
type UpstreamOptions struct {
	// MinDelay and MaxDelay are the minimum and maximum delay before the next attempt to
	// connect. The delay doubles with each failed attempt and each connection that lasts
	// less than MaxDelay. It is reduced at random by up to half, so that clients do not
	// reconnect simultaneously. 0 means 500 milliseconds and 1 minute.
	MinDelay, MaxDelay time.Duration
	// MaxDowntime limits how long the Upstream tries to connect without a connection that
	// lasts at least MaxDelay. It then gives up. 0 means 24 hours; a negative value means
	// no limit.
	MaxDowntime time.Duration
	// Wait is how long calls wait for a connection, measured from when the last connection
	// was lost or from the call of [Client.Maintain]. After that, calls fail immediately
	// until there is a connection. A short restart of the server therefore goes unnoticed,
	// and calls to a server that is down fail quickly. 0 means 3 seconds; a negative value
	// means that calls never wait.
	Wait time.Duration
	// Retry reports whether to try again after an error of connecting. If it is nil, every
	// error except [ErrUnauthorized] is retried, because a login may involve the user.
	Retry func(err error) bool
	// Connected is called with each new connection before it is used, for example to add
	// middleware to it. If it returns an error, the connection is closed and the attempt
	// counts as failed. It must not close the Upstream. It may be nil.
	Connected func(ctx context.Context, c *Conn) error
	// StateChanged is called after each state change, one call at a time. If several
	// changes are queued while it runs, the oldest may be dropped. It may be nil; changes
	// are logged anyway.
	StateChanged func(UpstreamState)
	// Logger receives diagnostic messages. Nil means the client's logger. Use
	// [slog.Logger.With] to distinguish several servers.
	Logger *slog.Logger
}

func (o *UpstreamOptions) withDefaults(c *Client) UpstreamOptions {
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

// Maintain returns an [Upstream] that connects to a server and reconnects whenever the
// connection ends; a command is restarted. Maintain does not wait for the first connection.
// The Upstream lasts until ctx is done, [Upstream.Close] is called, or it gives up. opts
// may be nil.
//
// Set [ClientOptions].KeepAlive to detect a server that stops answering. Maintain panics if
// t is nil.
func (c *Client) Maintain(ctx context.Context, t transport.Transport, opts *UpstreamOptions) *Upstream {
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

// maxReports is the maximum number of state changes queued for StateChanged.
const maxReports = 16

// run connects and reconnects until the Upstream ends. It is the Upstream's goroutine.
func (u *Upstream) run(ctx context.Context) {
	defer close(u.ended)
	lasting := time.Now()
	for n := 0; ; n++ {
		lasted, err := u.connectOnce(ctx)
		if lasted >= u.opts.MaxDelay {
			n, lasting = 0, time.Now()
		}
		switch {
		case ctx.Err() != nil:
			u.close(context.Cause(ctx))
			return
		case lasted == 0 && !u.opts.Retry(err):
			u.giveUp(fmt.Errorf("mcp: connecting is not tried again: %w", err))
			return
		case time.Since(lasting) >= u.opts.MaxDowntime:
			u.giveUp(fmt.Errorf("mcp: gave up after %v without a lasting connection: %w", u.opts.MaxDowntime, err))
			return
		}
		delay := async.Jitter(async.Backoff(u.opts.MinDelay, u.opts.MaxDelay, n))
		u.setWaiting(err, lasted == 0, delay)
		_ = async.Sleep(ctx, delay) // connecting fails immediately if ctx is done
		u.setConnecting()
		if ctx.Err() == nil {
			trace(traceOf(ctx).Reconnect, mcptrace.ReconnectInfo{Kind: "connection", Err: err})
		}
	}
}

// connectOnce connects and waits until the connection has ended. It returns how long the
// connection lasted, or 0 if there was none, and why it ended or could not be established.
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
	u.setLost(err)
	select {
	case <-conn.Done():
	case <-ctx.Done():
	}
	u.closing = conn.Close()
	return max(time.Since(start), 1), err
}

// closeStale returns middleware that closes a connection if the server no longer speaks the
// negotiated version, because another program answers at its address. The next connection
// negotiates again.
func closeStale(conn *Conn) Middleware {
	return func(next Handler) Handler {
		return HandlerFunc(func(ctx context.Context, req *Request) (Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if errors.Is(err, ErrSessionLost) || errors.Is(err, transport.ErrNotUnderstood) || CodeOf(err) == CodeUnsupportedVersion {
				go conn.Close() // in a goroutine, because Close waits for the transport
			}
			return res, err
		})
	}
}

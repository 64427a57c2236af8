// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp/transport"
)

// ErrNotConnected is returned for calls on an [Upstream] that has no connection. The call
// had no effect.
var ErrNotConnected = errors.New("mcp: there is no connection to the server")

// An Upstream maintains a connection to a server and reconnects when it is lost. It is
// created by [Client.Maintain]. It is a Handler: mounted on a [Mux], it acts as a gateway
// that stays up. For everything else, [Upstream.Conn] returns the current connection. It is
// safe for concurrent use.
//
// If the connection ends, calls in flight fail. They are not retried, because they may have
// been executed. Use middleware.Retry for calls that may be repeated.
type Upstream struct {
	// Reconnecting is a layer above Conn: all that was negotiated, listed and asked belongs
	// to one handshake. A transport that reconnects would repeat handshakes; an option of
	// Client would make every method of Conn say what it does while disconnected.

	client    *Client
	transport transport.Transport
	opts      UpstreamOptions
	cancel    context.CancelCauseFunc
	reports   *serialQueue  // queued calls to StateChanged
	ended     chan struct{} // closed when run has returned
	closing   error         // error of closing the last connection; set before ended is closed

	mu      sync.Mutex
	state   UpstreamState
	changed chan struct{} // closed and replaced when the state changes
}

// An UpstreamState is the state of an [Upstream] at one point in time.
type UpstreamState struct {
	// Conn is the current connection, or nil if there is none.
	Conn *Conn
	// Since is when the connection was established or lost. Before the first connection, it
	// is when [Client.Maintain] was called.
	Since time.Time
	// Err is the reason why there is no connection. It is nil if there is one, and before
	// the first attempt has failed.
	Err error
	// Failures is the number of failed attempts to connect since the connection was lost.
	// Next is when the next attempt starts, or zero if it is in progress.
	Failures int
	Next     time.Time
	// Closed reports that the Upstream has ended and makes no further attempts.
	Closed bool
}

// mustBeMade panics unless the Upstream was created by Maintain.
func (u *Upstream) mustBeMade() {
	made.Check(u != nil && u.client != nil, "mcp: an Upstream", "Client.Maintain")
}

// State returns the current state, for example for a health check.
func (u *Upstream) State() UpstreamState {
	u.mustBeMade()
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

// Conn returns the current connection. If there is none, it waits according to
// [UpstreamOptions].Wait, and then returns an error that wraps [ErrNotConnected] and the
// reason. After Close, it returns [ErrClosed]. Do not keep the connection; call Conn again
// for the next call. Close the Upstream, not the connection.
func (u *Upstream) Conn(ctx context.Context) (*Conn, error) {
	u.mustBeMade()
	return u.await(ctx, false)
}

// ServeMCP implements [Handler]. It waits for a connection as [Upstream.Conn] does and
// sends the request to the server as [Conn.ServeMCP] does.
//
// A subscription lasts until its sender cancels it or the Upstream ends. The Upstream
// accepts the changes of all lists. After a reconnect, everything in the subscription
// counts as changed, because changes made in the meantime are unknown.
func (u *Upstream) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	if req.Method == MethodListen {
		res, err := u.listen(ctx, req)
		if err != nil {
			return nil, hideCause(ctx, err)
		}
		return res, nil
	}
	conn, err := u.Conn(ctx)
	if err != nil {
		return nil, hideCause(ctx, err)
	}
	return conn.ServeMCP(ctx, req)
}

// Close closes the connection and stops reconnecting. Calls fail with [ErrClosed]. Close
// returns within a time limit set by the transport, with the error of closing the
// connection.
func (u *Upstream) Close() error {
	u.mustBeMade()
	u.cancel(ErrClosed)
	<-u.ended
	return u.closing
}

// Done returns a channel that is closed when the Upstream has ended: it was closed, its
// context is done, or it gave up. Err then returns the reason.
func (u *Upstream) Done() <-chan struct{} {
	u.mustBeMade()
	return u.ended
}

// Err returns the reason why the Upstream ended. It is nil if the Upstream has not ended or
// was closed by Close.
func (u *Upstream) Err() error {
	if s := u.State(); s.Closed && !errors.Is(s.Err, ErrClosed) {
		return s.Err
	}
	return nil
}

// await returns the connection once there is one. It waits according to
// UpstreamOptions.Wait or, if asLongAsItTakes is true, without a limit.
func (u *Upstream) await(ctx context.Context, asLongAsItTakes bool) (*Conn, error) {
	for {
		u.mu.Lock()
		s, changed := u.state, u.changed
		u.mu.Unlock()
		switch {
		case s.Closed:
			return nil, s.Err
		case s.Conn != nil && !hasEnded(s.Conn):
			return s.Conn, nil
		}
		waiting, stop := ctx, func() {}
		if s.Conn == nil && !asLongAsItTakes { // otherwise run will soon notice that Conn ended
			waiting, stop = context.WithTimeoutCause(ctx, u.opts.Wait-time.Since(s.Since), s.notConnected())
		}
		select {
		case <-changed:
			stop()
		case <-waiting.Done():
			stop()
			return nil, context.Cause(waiting)
		}
	}
}

// hasEnded reports whether a connection has ended or is being closed.
func hasEnded(c *Conn) bool {
	select {
	case <-c.ctx.Done():
		return true
	case <-c.Done():
		return true
	default:
		return false
	}
}

// notConnected returns the error of a call while there is no connection.
func (s *UpstreamState) notConnected() error {
	if s.Err == nil {
		return ErrNotConnected
	}
	return fmt.Errorf("%w: %w", ErrNotConnected, s.Err)
}

// update changes the state, wakes the goroutines in await and queues a call to
// StateChanged.
func (u *Upstream) update(change func(s *UpstreamState)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(&u.state)
	close(u.changed)
	u.changed = make(chan struct{})
	if state := u.state; u.opts.StateChanged != nil {
		u.reports.add(0, func() { u.opts.StateChanged(state) })
	}
}

func (u *Upstream) connected(conn *Conn) {
	u.opts.Logger.Info("mcp: connected", "version", conn.Version())
	u.update(func(s *UpstreamState) { *s = UpstreamState{Conn: conn, Since: time.Now()} })
}

func (u *Upstream) setLost(err error) {
	u.update(func(s *UpstreamState) { *s = UpstreamState{Err: err, Since: time.Now()} })
}

// setWaiting records that the next attempt starts after a delay, because a connection has
// ended or the last attempt failed.
func (u *Upstream) setWaiting(err error, failed bool, d time.Duration) {
	u.update(func(s *UpstreamState) {
		if failed {
			s.Failures++
		}
		s.Err, s.Next = err, time.Now().Add(d)
	})
	u.opts.Logger.Warn("mcp: not connected", "error", err, "failures", u.State().Failures, "next", d)
}

// setConnecting records that the next attempt starts.
func (u *Upstream) setConnecting() { u.update(func(s *UpstreamState) { s.Next = time.Time{} }) }

func (u *Upstream) close(cause error) {
	u.update(func(s *UpstreamState) { *s = UpstreamState{Err: cause, Since: time.Now(), Closed: true} })
}

// giveUp ends an Upstream that was not closed.
func (u *Upstream) giveUp(cause error) {
	u.close(cause)
	u.opts.Logger.Error("mcp: no further attempt to connect", "error", cause)
}

// Listen subscribes to changes, as [Conn.Listen] does, until the Upstream ends. After each
// reconnect, fn is called for everything in the filter, because anything may have changed.
// The changes of all lists are accepted. If there is no connection, a subscription to lists
// is acknowledged immediately, and fn is called as soon as there is one.
func (u *Upstream) Listen(ctx context.Context, filter SubscriptionFilter, fn func(Change)) (*Subscription, error) {
	u.mustBeMade()
	mustBeFunc("Upstream.Listen", fn == nil)
	return startSubscription(ctx, HandlerFunc(u.listen), ID{}, filter, fn, u.opts.Logger)
}

// An upstreamListener serves one subscriptions/listen request with successive
// subscriptions, on one connection after the other.
type upstreamListener struct {
	upstream   *Upstream
	subscriber subscriber

	mu           sync.Mutex
	filter       SubscriptionFilter // requested from the server; accepted, once acknowledged
	acknowledged bool
}

// listen serves subscriptions/listen until ctx is done or the Upstream has ended. It
// returns an error from the server only if no server has accepted the subscription before.
func (u *Upstream) listen(ctx context.Context, req *Request) (Result, error) {
	var p ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	l := &upstreamListener{upstream: u, subscriber: newSubscriber(req), filter: p.Notifications}
	if u.State().Conn == nil && len(p.Notifications.ResourceSubscriptions)+len(p.Notifications.Extra) == 0 {
		if err := l.acknowledge(ctx, SubscriptionFilter{}); err != nil {
			return nil, err
		}
	}
	for {
		conn, err := u.await(ctx, true)
		if err == nil {
			_ = async.Renew(ctx, firstPause, maxPause, func(time.Duration) bool {
				err = l.listen(ctx, conn)
				return err == nil && ctx.Err() == nil && !hasEnded(conn)
			})
		}
		switch {
		case ctx.Err() != nil:
			return req.listenResult(ctx)
		case err != nil:
			return nil, err
		}
	}
}

// listen subscribes on a connection and returns when the subscription has ended. It returns
// nil if the subscription should be renewed.
func (l *upstreamListener) listen(ctx context.Context, conn *Conn) error {
	inner := l.subscriber.req.derive(MethodListen, mustMarshal(&ListenParams{Notifications: l.filter}))
	inner.ID = l.subscriber.req.ID
	n := &changeNotifier{
		acknowledged: func(ctx context.Context, f SubscriptionFilter) {
			_ = l.acknowledge(ctx, f) // if it fails, the sender is gone
		},
		other: func(ctx context.Context, method string, params json.RawMessage) error {
			return l.subscriber.forward(ctx, method, params)
		},
		changed: func(ctx context.Context, c Change) error { return l.subscriber.notify(ctx, changeSet{c}) },
	}
	_, err := serve(ctx, HandlerFunc(conn.serve), inner, n, l.upstream.opts.Logger)
	_, refused := errors.AsType[*Error](err)
	switch {
	case !refused || l.isAcknowledged():
		return nil
	case CodeOf(err) == CodeMethodNotFound: // the server may be replaced by one that supports it
		return l.acknowledge(ctx, SubscriptionFilter{})
	}
	return err
}

// acknowledge acknowledges the subscription to its sender, with all lists that the sender
// requested and the resources that the server accepted. On later calls, it reports
// everything in the subscription as changed.
func (l *upstreamListener) acknowledge(ctx context.Context, accepted SubscriptionFilter) error {
	l.mu.Lock()
	first := !l.acknowledged
	if first {
		l.acknowledged = true
		l.filter.ResourceSubscriptions, l.filter.Extra = accepted.ResourceSubscriptions, accepted.Extra
	}
	filter := l.filter
	l.mu.Unlock()
	if first {
		return l.subscriber.acknowledge(ctx, filter)
	}
	return l.subscriber.notify(ctx, everythingIn(&filter))
}

func (l *upstreamListener) isAcknowledged() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged
}

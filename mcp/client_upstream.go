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

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp/transport"
)

// ErrNotConnected means that an [Upstream] has no connection, and that a call had no effect.
var ErrNotConnected = errors.New("mcp: there is no connection to the server")

// An Upstream is a server that comes and goes. It is made by [Client.Maintain]. It is a
// Handler: mounted on a [Mux], it makes a gateway that stays up. [Upstream.Conn] returns the
// connection of the moment for all that a client does. It is safe for concurrent use.
//
// A call that is in flight when the connection ends fails. It is not sent again, because
// it may have been executed. Use middleware.Retry for calls that may be repeated.
type Upstream struct {
	client    *Client
	transport transport.Transport
	opts      ReconnectOptions
	cancel    context.CancelCauseFunc
	reports   *serialQueue  // calls of StateChanged
	ended     chan struct{} // closed when run has returned
	closing   error         // of closing the last connection; set before ended is closed

	mu      sync.Mutex
	state   UpstreamState
	changed chan struct{} // closed when the state changes, and replaced
}

// An UpstreamState describes an [Upstream] at one moment.
type UpstreamState struct {
	// Conn is the connection, nil while there is none.
	Conn *Conn
	// Since is when the connection was made or lost. Before the first one, it is when
	// [Client.Maintain] was called.
	Since time.Time
	// Err is why there is no connection. It is nil while there is one, and before the first
	// attempt has failed.
	Err error
	// Failures counts the attempts to connect that have failed since the connection was
	// lost, and Next is when the next one begins: zero if it is in progress.
	Failures int
	Next     time.Time
	// Closed reports that no further attempt is made.
	Closed bool
}

// mustBeMade panics if Maintain did not return the Upstream.
func (u *Upstream) mustBeMade() {
	made.Check(u != nil && u.client != nil, "mcp: an Upstream", "Client.Maintain")
}

// State returns the state of the moment, for example for a health check.
func (u *Upstream) State() UpstreamState {
	u.mustBeMade()
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

// Conn returns the connection of the moment. If there is none, it waits as
// [ReconnectOptions].Wait says, and then returns an error that wraps [ErrNotConnected] and
// the reason, or [ErrClosed] after Close. Do not keep the connection: call Conn again for
// the next call. Close the Upstream, not the connection.
func (u *Upstream) Conn(ctx context.Context) (*Conn, error) {
	u.mustBeMade()
	return u.await(ctx, false)
}

// ServeMCP implements [Handler]: it sends the request to the server, as [Conn.ServeMCP]
// does, once there is a connection.
//
// A subscription lasts as long as its sender wants it and the Upstream lives. The Upstream
// accepts the changes of all lists. What changes while there is no connection is not
// known: after it is back, everything in the subscription counts as changed.
func (u *Upstream) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	res, err := u.serve(ctx, req)
	if err != nil {
		return nil, hideCause(ctx, err)
	}
	return res, nil
}

func (u *Upstream) serve(ctx context.Context, req *Request) (Result, error) {
	if req.Method == MethodListen {
		return u.listen(ctx, req)
	}
	conn, err := u.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return conn.serve(ctx, req)
}

// Close ends the connection and all attempts to make one. Calls fail with [ErrClosed]. It
// returns within the bounds of the transport, with the error of closing the connection.
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

// Err returns why the Upstream ended. It is nil if it has not, or was closed by Close.
func (u *Upstream) Err() error {
	if s := u.State(); s.Closed && !errors.Is(s.Err, ErrClosed) {
		return s.Err
	}
	return nil
}

// await returns the connection once there is one. It waits for it as the options say, or
// for as long as it takes.
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
		if s.Conn == nil && !asLongAsItTakes { // a connection that has ended is noticed in a moment
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

// hasEnded reports whether a connection has ended, or is being closed.
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

// update changes the state, and reports it to those who wait and to the program.
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

func (u *Upstream) lost(err error) {
	u.update(func(s *UpstreamState) { *s = UpstreamState{Err: err, Since: time.Now()} })
}

// pausing notes that the next attempt begins after a pause, because a connection has ended
// or the last attempt failed.
func (u *Upstream) pausing(err error, failed bool, d time.Duration) {
	u.update(func(s *UpstreamState) {
		if failed {
			s.Failures++
		}
		s.Err, s.Next = err, time.Now().Add(d)
	})
	u.opts.Logger.Warn("mcp: not connected", "error", err, "failures", u.State().Failures, "next", d)
}

// trying notes that the next attempt begins.
func (u *Upstream) trying() { u.update(func(s *UpstreamState) { s.Next = time.Time{} }) }

func (u *Upstream) close(cause error) {
	u.update(func(s *UpstreamState) { *s = UpstreamState{Err: cause, Since: time.Now(), Closed: true} })
	if !errors.Is(cause, ErrClosed) {
		u.opts.Logger.Error("mcp: no further attempt to connect", "error", cause)
	}
}

// Listen subscribes to changes, as [Conn.Listen] does, for as long as the Upstream lives:
// after each reconnect, fn is called for everything in the filter, since anything may have
// changed. The changes of all lists are accepted, and if there is no connection, a
// subscription to lists is acknowledged at once: fn is then called as soon as there is one.
func (u *Upstream) Listen(ctx context.Context, filter SubscriptionFilter, fn func(Change)) (*Subscription, error) {
	u.mustBeMade()
	return listenTo(ctx, HandlerFunc(u.serve), ID{}, filter, fn, u.opts.Logger)
}

// upstreamListener serves one subscriptions/listen request by subscriptions at one
// connection after the other.
type upstreamListener struct {
	upstream   *Upstream
	subscriber subscriber
	delay      time.Duration // before the next subscription at the same connection

	mu           sync.Mutex
	filter       SubscriptionFilter // what is requested of the server; once acknowledged, what was accepted
	acknowledged bool
}

// listen serves subscriptions/listen until ctx is done or the Upstream has ended. It
// returns an error of the server only if that has not accepted the subscription before.
func (u *Upstream) listen(ctx context.Context, req *Request) (Result, error) {
	var p ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	l := &upstreamListener{upstream: u, subscriber: newSubscriber(req), filter: p.Notifications, delay: firstPause}
	if u.State().Conn == nil && len(p.Notifications.ResourceSubscriptions)+len(p.Notifications.Extra) == 0 {
		if err := l.acknowledge(ctx, SubscriptionFilter{}); err != nil {
			return nil, err
		}
	}
	for {
		conn, err := u.await(ctx, true)
		if err == nil {
			err = l.listen(ctx, conn)
		}
		switch {
		case ctx.Err() != nil:
			return req.listenResult(ctx)
		case err != nil:
			return nil, err
		}
		l.pause(ctx, conn)
	}
}

// listen subscribes at a connection, and returns when the subscription has ended: an error,
// unless another one shall be made.
func (l *upstreamListener) listen(ctx context.Context, conn *Conn) error {
	start := time.Now()
	inner := l.subscriber.req.derive(MethodListen, mustMarshal(&ListenParams{Notifications: l.filter}))
	inner.ID = l.subscriber.req.ID
	n := &changeNotifier{
		acknowledged: func(ctx context.Context, f SubscriptionFilter) {
			_ = l.acknowledge(ctx, f) // if it fails, the sender is gone
		},
		other: func(ctx context.Context, method string, params json.RawMessage) error {
			return l.subscriber.pass(ctx, method, params)
		},
		changed: func(ctx context.Context, c Change) error { return l.subscriber.notify(ctx, changeSet{c}) },
	}
	_, err := serve(ctx, HandlerFunc(conn.serve), inner, n, l.upstream.opts.Logger)
	if time.Since(start) >= maxPause {
		l.delay = firstPause
	}
	_, refused := errors.AsType[*Error](err)
	switch {
	case !refused || l.isAcknowledged():
		return nil
	case CodeOf(err) == CodeMethodNotFound: // the server may be replaced by one that has it
		return l.acknowledge(ctx, SubscriptionFilter{})
	}
	return err
}

// pause waits before the next subscription, but not if the connection has ended.
func (l *upstreamListener) pause(ctx context.Context, conn *Conn) {
	select {
	case <-time.After(l.delay):
		l.delay = min(2*l.delay, maxPause)
	case <-conn.Done():
		l.delay = firstPause
	case <-ctx.Done():
	}
}

// acknowledge acknowledges the subscription to its sender: the changes of all lists that it
// requested, and the resources that the server has accepted. The next time, it sends
// everything in it as changed.
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

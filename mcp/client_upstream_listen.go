// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

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

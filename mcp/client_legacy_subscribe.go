// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"time"

	"github.com/go-psi/psi/internal/revision"
)

// listen serves subscriptions/listen from the unsolicited notifications of the server and
// those that follow resources/subscribe.
func (e *legacyClient) listen(ctx context.Context, req *Request) (Result, error) {
	var p ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.Notifications.check(maxSubscriptions); err != nil {
		return nil, err
	}
	accepted, err := e.accept(ctx, &p.Notifications)
	if err != nil {
		return nil, err
	}
	defer e.unsubscribeLater(ctx, accepted.ResourceSubscriptions)
	l := newListener(req.Principal, &accepted)
	if err := e.hub.add(l); err != nil {
		return nil, err
	}
	defer e.hub.remove(l)
	if err := req.sendAcknowledgement(ctx, accepted); err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return req.listenResult(ctx)
		case <-e.conn.ctx.Done():
			return nil, context.Cause(e.conn.ctx)
		case <-e.conn.wire.Done():
			return nil, e.conn.wire.Err()
		case <-l.wake:
			if err := req.sendChanges(ctx, l.drain()); err != nil && ctx.Err() == nil {
				return nil, err
			}
		}
	}
}

// accept subscribes to the resources of a filter, and returns the part of it that the
// server can serve.
func (e *legacyClient) accept(ctx context.Context, f *SubscriptionFilter) (SubscriptionFilter, error) {
	caps := e.conn.Server().Capabilities
	accepted := caps.announcedLists(*f)
	if caps.Resources == nil || !caps.Resources.Subscribe {
		return accepted, nil
	}
	for _, uri := range f.ResourceSubscriptions {
		if err := e.subscribe(ctx, uri); err != nil {
			if ctx.Err() != nil {
				e.unsubscribeLater(ctx, accepted.ResourceSubscriptions)
				return accepted, err
			}
			continue // left out of the acknowledgement
		}
		accepted.ResourceSubscriptions = append(accepted.ResourceSubscriptions, uri)
	}
	return accepted, nil
}

// remoteSubscription is the subscription to one resource at the server, which all
// listeners share.
type remoteSubscription struct {
	listeners int           // those that need it, or are about to; guarded by the lock of the client
	turn      chan struct{} // has one place: full while a goroutine subscribes or unsubscribes
	active    bool          // the server has accepted it; of the goroutine that has the turn
}

// lock waits until no other goroutine subscribes or unsubscribes.
func (r *remoteSubscription) lock(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *remoteSubscription) unlock() { <-r.turn }

// retain counts one listener more.
func (e *legacyClient) retain(uri string) *remoteSubscription {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.subscribed[uri]
	if r == nil {
		r = &remoteSubscription{turn: make(chan struct{}, 1)}
		e.subscribed[uri] = r
	}
	r.listeners++
	return r
}

// release counts one listener less, and reports whether it was the last.
func (e *legacyClient) release(r *remoteSubscription) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.listeners--
	return r.listeners == 0
}

// removeUnused removes a subscription that no listener needs.
func (e *legacyClient) removeUnused(uri string, r *remoteSubscription) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.listeners == 0 && e.subscribed[uri] == r {
		delete(e.subscribed, uri)
	}
}

// subscribe makes sure that the server sends updates of a resource. If another goroutine
// is asking the server for that, subscribe waits: the server may refuse, or not respond.
func (e *legacyClient) subscribe(ctx context.Context, uri string) error {
	r := e.retain(uri)
	err := r.lock(ctx)
	if err == nil {
		if !r.active {
			err = e.inSession(ctx, func() error { return e.command(ctx, MethodSubscribe, map[string]string{"uri": uri}) })
			r.active = err == nil
		}
		r.unlock()
	}
	if err != nil {
		e.unsubscribeLater(ctx, []string{uri})
	}
	return err
}

// unsubscribeTime bounds how long the end of a subscription waits for the server.
const unsubscribeTime = 5 * time.Second

// unsubscribeLater undoes subscribe in the background: the end of a subscription does not
// wait for a server that does not respond.
func (e *legacyClient) unsubscribeLater(ctx context.Context, uris []string) {
	if len(uris) == 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTime)
		defer cancel()
		for _, uri := range uris {
			e.unsubscribe(ctx, uri)
		}
	}()
}

// unsubscribe undoes subscribe. The last listener unsubscribes at the server, before
// another one can subscribe again.
func (e *legacyClient) unsubscribe(ctx context.Context, uri string) {
	e.mu.Lock()
	r := e.subscribed[uri]
	e.mu.Unlock()
	defer e.removeUnused(uri, r)
	if r.lock(ctx) != nil {
		e.release(r)
		return
	}
	defer r.unlock()
	if e.release(r) && r.active && e.conn.ctx.Err() == nil {
		r.active = false
		_ = e.command(ctx, revision.Unsubscribe, map[string]string{"uri": uri}) // the server may be gone
	}
}

// publishEverything counts everything as changed, because notifications may have been
// lost.
func (e *legacyClient) publishEverything() {
	var filter SubscriptionFilter
	if server := e.conn.Server(); server != nil {
		filter = server.Capabilities.announcedLists(allLists())
	}
	e.mu.Lock()
	filter.ResourceSubscriptions = sortedKeys(e.subscribed)
	e.mu.Unlock()
	for _, c := range everythingIn(&filter).sorted() {
		e.hub.publish(c)
		e.conn.enqueueNew(c.Method, c.params(nil))
	}
}

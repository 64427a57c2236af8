// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"time"
)

// listen makes a subscription of what the server tells unasked, and of what it
// tells after resources/subscribe.
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
	defer e.unsubscribe(ctx, accepted.ResourceSubscriptions)
	s := newSubscription(req, *accepted)
	if err := e.hub.add(&s.listener); err != nil {
		return nil, err
	}
	defer e.hub.remove(&s.listener)
	if err := s.acknowledge(ctx); err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return s.ended(ctx)
		case <-e.conn.ctx.Done():
			return nil, context.Cause(e.conn.ctx)
		case <-e.conn.wire.Done():
			return nil, e.conn.wire.Err()
		case <-s.listener.wake:
			changes, uris := s.listener.take()
			if err := s.tell(ctx, changes, uris); err != nil {
				return nil, err
			}
		}
	}
}

// accept is the part of a filter that the server can serve.
func (e *legacyClient) accept(ctx context.Context, f *SubscriptionFilter) (*SubscriptionFilter, error) {
	caps := e.conn.Server().Capabilities
	accepted := &SubscriptionFilter{
		ToolsListChanged:     f.ToolsListChanged && caps.tellsOf(toolsChanged),
		PromptsListChanged:   f.PromptsListChanged && caps.tellsOf(promptsChanged),
		ResourcesListChanged: f.ResourcesListChanged && caps.tellsOf(resourcesChanged),
	}
	if caps.Resources == nil || !caps.Resources.Subscribe {
		return accepted, nil
	}
	for _, uri := range f.ResourceSubscriptions {
		if err := e.subscribe(ctx, uri); err != nil {
			if ctx.Err() != nil {
				e.unsubscribe(ctx, accepted.ResourceSubscriptions)
				return nil, err
			}
			continue // it is left out of what is acknowledged
		}
		accepted.ResourceSubscriptions = append(accepted.ResourceSubscriptions, uri)
	}
	return accepted, nil
}

// watched is a resource that somebody listens to, or is about to.
type watched struct {
	listeners int           // guarded by the lock of the era
	turn      chan struct{} // of one place: taken by who speaks with the server of it
	told      bool          // whose turn it is knows that the server has agreed
}

// await waits for its turn.
func (r *watched) await(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *watched) pass() { <-r.turn }

// retain counts one listener more.
func (e *legacyClient) retain(uri string) *watched {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.subscribed[uri]
	if r == nil {
		r = &watched{turn: make(chan struct{}, 1)}
		e.subscribed[uri] = r
	}
	r.listeners++
	return r
}

// release counts one listener less, and reports whether it was the last.
func (e *legacyClient) release(r *watched) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.listeners--
	return r.listeners == 0
}

// clear forgets a resource that nobody listens to.
func (e *legacyClient) clear(uri string, r *watched) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.listeners == 0 && e.subscribed[uri] == r {
		delete(e.subscribed, uri)
	}
}

// subscribe makes sure that the server tells of a resource. Who comes while another one
// asks the server for that waits for the answer: it may be a refusal, or never come.
func (e *legacyClient) subscribe(ctx context.Context, uri string) error {
	r := e.retain(uri)
	err := r.await(ctx)
	if err == nil {
		if !r.told {
			err = e.inSession(ctx, func() error { return e.command(ctx, legacySubscribe, map[string]string{"uri": uri}) })
			r.told = err == nil
		}
		r.pass()
	}
	if err != nil {
		e.unsubscribe(ctx, []string{uri})
	}
	return err
}

// unsubscribeTime bounds how long the end of a subscription waits for the server.
const unsubscribeTime = 5 * time.Second

// unsubscribe undoes subscribe. The server is told by the last who listens, and
// before anybody else tells it to begin anew.
func (e *legacyClient) unsubscribe(ctx context.Context, uris []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTime)
	defer cancel()
	for _, uri := range uris {
		e.leave(ctx, uri)
	}
}

func (e *legacyClient) leave(ctx context.Context, uri string) {
	e.mu.Lock()
	r := e.subscribed[uri]
	e.mu.Unlock()
	defer e.clear(uri, r)
	if r.await(ctx) != nil {
		e.release(r)
		return
	}
	defer r.pass()
	if e.release(r) && r.told && e.conn.ctx.Err() == nil {
		r.told = false
		_ = e.command(ctx, legacyUnsubscribe, map[string]string{"uri": uri}) // the server may be gone
	}
}

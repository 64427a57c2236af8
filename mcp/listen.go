// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
)

// listen serves subscriptions/listen: it acknowledges the part of the filter that the
// server can serve, and then sends notifications until the client or the transport ends
// the request. Everything but listening to mounts happens on the goroutine of the request.
func (g *registry) listen(ctx context.Context, req *Request) (Result, error) {
	s, err := g.subscribe(ctx, req)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := req.sendAcknowledgement(ctx, s.accepted); err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			// Changes that came together with the end may be missed by a subscription that
			// replaces this one. A client that cancelled gets nothing more.
			if !wasCancelled(ctx) {
				_ = s.sendVisible(context.WithoutCancel(ctx)) // if it fails, the client is gone
			}
			return req.listenResult(ctx)
		case ack := <-s.mounts.acks:
			s.mounts.catchUp(ack)
		case <-s.listener.remounted:
			s.mounts.refresh(ctx)
		case <-s.listener.wake:
			if err := s.sendVisible(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// muxSubscription is a subscription at a mux, with those at its mounts.
type muxSubscription struct {
	registry *registry
	req      *Request
	accepted SubscriptionFilter
	listener *listener
	mounts   *mountListeners
}

// subscribe adds a listener, which receives all changes from now on.
func (g *registry) subscribe(ctx context.Context, req *Request) (*muxSubscription, error) {
	var p ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.Notifications.check(g.opts.MaxSubscriptions); err != nil {
		return nil, err
	}
	accepted := g.accept(ctx, req, &p.Notifications)
	l := newListener(req.Principal, &accepted)
	if err := g.hub.add(l); err != nil {
		return nil, err
	}
	mounts := newMountListeners(g, req, accepted, l)
	accepted.ResourceSubscriptions = mounts.start(ctx)
	return &muxSubscription{g, req, accepted, l, mounts}, nil
}

func (s *muxSubscription) close() {
	s.mounts.stop()
	s.registry.hub.remove(s.listener)
}

// accept returns the part of a filter that this server can serve: the lists that it
// announces changes of, and the resources that the caller may subscribe to.
func (g *registry) accept(ctx context.Context, req *Request, f *SubscriptionFilter) (accepted SubscriptionFilter) {
	s := g.load()
	caps := *s.capabilities
	s.addMounted(ctx, func() *Request { return req.derive(MethodDiscover, nil) }, &caps)
	accepted = caps.announcedLists(*f)
	if caps.Resources == nil || !caps.Resources.Subscribe {
		return accepted
	}
	for _, uri := range f.ResourceSubscriptions {
		if _, before := slices.BinarySearch(req.call.accepted, uri); before || g.maySubscribe(ctx, req, uri) {
			accepted.ResourceSubscriptions = append(accepted.ResourceSubscriptions, uri)
		}
	}
	return accepted
}

// sendVisible sends the changes that wait. A resource below a subscribed directory may
// have a registration of its own, with other permissions: if the caller may not subscribe
// to it, or it is gone, the directory stands for it.
func (s *muxSubscription) sendVisible(ctx context.Context) error {
	visible := changeSet{}
	for c := range s.listener.drain() {
		if covering, _ := s.listener.covering(c); covering != c && !s.registry.maySubscribe(ctx, s.req, c.URI) {
			c = covering
		}
		visible.add(c)
	}
	return s.req.sendChanges(ctx, visible)
}

// subscriptionMeta returns the metadata of everything that is sent on the subscription
// that the request began.
func (r *Request) subscriptionMeta() (m Meta) {
	m.Set(MetaSubscriptionID, r.ID)
	return m
}

// sendAcknowledgement tells the sender of the request that its subscription has begun.
func (r *Request) sendAcknowledgement(ctx context.Context, accepted SubscriptionFilter) error {
	return r.Notify(ctx, NotificationAcknowledged, &AcknowledgedParams{Notifications: accepted, Meta: r.subscriptionMeta()})
}

// sendChanges sends the notifications about changes to the sender of the request.
func (r *Request) sendChanges(ctx context.Context, changes changeSet) error {
	meta := r.subscriptionMeta()
	for _, c := range changes.sorted() {
		if err := r.Notify(ctx, c.Method, c.params(meta)); err != nil {
			return err
		}
	}
	return nil
}

// listenResult returns the result of a subscription whose context is done. It is an error
// unless the server ended the subscription.
func (r *Request) listenResult(ctx context.Context) (Result, error) {
	if cause := context.Cause(ctx); !errors.Is(cause, ErrClosed) {
		return nil, cause
	}
	return &ListenResult{ResultBase{Meta: r.subscriptionMeta()}}, nil
}

// derive returns another request of the same caller, with its own stream of
// notifications.
func (r *Request) derive(method string, params json.RawMessage) *Request {
	d := r.Clone()
	d.call = &call{session: r.call.session}
	d.Method, d.ID = method, ID{}
	if err := d.setParams(params); err != nil {
		panic("mcp: params made here are malformed: " + err.Error())
	}
	return d
}

// changesIn returns all changes that a filter covers.
func changesIn(f *SubscriptionFilter) []Change {
	everything := everythingIn(f)
	return everything.sorted()
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"maps"
	"slices"
)

// subscribe serves resources/subscribe. The handler decides: a URI that it would not
// accept in subscriptions/listen is not found.
func (l *Legacy) subscribe(ctx context.Context, req *Request) (Result, error) {
	uri := req.Name()
	if req.subject().to == 0 {
		return nil, Errorf(CodeInvalidParams, "params.uri is missing")
	}
	ok, err := l.isAccepted(ctx, Origin{req.Principal, req.Header}, uri)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ResourceNotFound(uri)
	}
	known, err := l.addSubscription(uri)
	if err != nil {
		return nil, err
	}
	if err := l.resubscribe(ctx); err != nil {
		if !known {
			l.removeSubscription(uri)
		}
		return nil, err
	}
	return &EmptyResult{}, nil
}

// unsubscribe serves resources/unsubscribe.
func (l *Legacy) unsubscribe(ctx context.Context, req *Request) (Result, error) {
	if req.subject().to == 0 {
		return nil, Errorf(CodeInvalidParams, "params.uri is missing")
	}
	l.removeSubscription(req.Name())
	if err := l.resubscribe(ctx); err != nil {
		return nil, err
	}
	return &EmptyResult{}, nil
}

// addSubscription adds a subscription, and reports whether it was there already.
func (l *Legacy) addSubscription(uri string) (known bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subscriptions == nil {
		l.subscriptions = map[string]struct{}{}
	}
	if _, known = l.subscriptions[uri]; !known && len(l.subscriptions) >= maxSubscriptions {
		return false, Errorf(CodeInvalidParams, "the session has %d subscriptions, which is the limit", maxSubscriptions)
	}
	l.subscriptions[uri] = struct{}{}
	return known, nil
}

func (l *Legacy) subscribedURIs() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.subscriptions))
}

func (l *Legacy) removeSubscription(uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subscriptions, uri)
}

// maxSubscriptions is the default limit of the resources that a session, or one
// subscription, may name.
const maxSubscriptions = 1000

// isAccepted reports whether the handler accepts a subscription to uri. It subscribes and
// cancels that once the handler has acknowledged.
func (l *Legacy) isAccepted(ctx context.Context, from Origin, uri string) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	acknowledged, accepted := false, false
	notifier := &changeNotifier{
		acknowledged: func(_ context.Context, f SubscriptionFilter) {
			acknowledged, accepted = true, slices.Contains(f.ResourceSubscriptions, uri)
			cancel()
		},
		changed: func(context.Context, Change) error { return ErrNotDelivered },
	}
	req := l.listenRequest(from, SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	_, err := Serve(ctx, l.handler, req, notifier, l.opts.Logger)
	if acknowledged {
		err = nil // the handler was cancelled
	}
	return accepted, err
}

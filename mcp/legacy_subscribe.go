// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"slices"
)

// subscribe enters the URI, if the handler would tell of its updates.
func (l *Legacy) subscribe(ctx context.Context, req *Request) (Result, error) {
	uri := req.Name()
	if req.subject().to == 0 {
		return nil, Errorf(CodeInvalidParams, "params.uri is missing")
	}
	ok, err := l.honours(ctx, Origin{req.Principal, req.Header}, uri)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ResourceNotFound(uri)
	}
	known, err := l.remember(uri)
	if err != nil {
		return nil, err
	}
	if err := l.refeed(ctx); err != nil {
		if !known {
			l.unremember(uri)
		}
		return nil, err
	}
	return &EmptyResult{}, nil
}

// remember enters a subscription, and reports whether it was there already.
func (l *Legacy) remember(uri string) (known bool, err error) {
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

func (l *Legacy) unremember(uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subscriptions, uri)
}

// maxSubscriptions is how many resources a session, or one subscription, may name if
// nothing else is said.
const maxSubscriptions = 1000

// honours asks the handler whether it would acknowledge a subscription.
func (l *Legacy) honours(ctx context.Context, from Origin, uri string) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := newRequest()
	l.makeListen(req, from, &ListenParams{Notifications: SubscriptionFilter{ResourceSubscriptions: []string{uri}}})
	probe := &probe{acknowledged: make(chan SubscriptionFilter, 1), cancel: cancel}
	_, err := Serve(ctx, l.handler, req, probe, l.opts.Logger)
	select {
	case f := <-probe.acknowledged:
		return slices.Contains(f.ResourceSubscriptions, uri), nil
	default:
		return false, err
	}
}

// probe ends a subscription as soon as it is acknowledged.
type probe struct {
	acknowledged chan SubscriptionFilter
	cancel       context.CancelFunc
}

// Notify implements [Notifier].
func (p *probe) Notify(_ context.Context, method string, params json.RawMessage) error {
	defer p.cancel()
	if method != NotificationAcknowledged {
		return ErrNotDelivered
	}
	var ack AcknowledgedParams
	if err := unmarshal(params, &ack); err != nil {
		return err
	}
	select {
	case p.acknowledged <- ack.Notifications:
	default:
	}
	return nil
}

func (l *Legacy) unsubscribe(ctx context.Context, req *Request) (Result, error) {
	if req.subject().to == 0 {
		return nil, Errorf(CodeInvalidParams, "params.uri is missing")
	}
	l.unremember(req.Name())
	if err := l.refeed(ctx); err != nil {
		return nil, err
	}
	return &EmptyResult{}, nil
}

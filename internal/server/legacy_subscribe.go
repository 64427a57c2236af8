// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp"
)

// subscribe serves resources/subscribe. The handler decides: a URI that it does not accept
// in subscriptions/listen is not found.
func (s *Session) subscribe(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	uri, ok := core.Target(req)
	if !ok {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.uri is missing")
	}
	ok, err := s.isAccepted(ctx, Origin{Principal: req.Principal, Header: req.Header}, uri)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, mcp.NewResourceNotFoundError(uri)
	}
	known, err := s.addSubscription(uri)
	if err != nil {
		return nil, err
	}
	if err := s.resubscribe(ctx); err != nil {
		if !known {
			s.removeSubscription(uri)
		}
		return nil, err
	}
	return &mcp.EmptyResult{}, nil
}

// unsubscribe serves resources/unsubscribe.
func (s *Session) unsubscribe(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	uri, ok := core.Target(req)
	if !ok {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.uri is missing")
	}
	s.removeSpellings(uri)
	if err := s.resubscribe(ctx); err != nil {
		return nil, err
	}
	return &mcp.EmptyResult{}, nil
}

// Limits on the subscriptions of a session: their number, and their size in bytes. All are in
// the filter of one request to the handler; a mux accepts as much.
const (
	maxSubscriptions = 1000
	maxSubscribed    = 256 << 10
)

// subscriptionOverhead is what an entry of the map of subscriptions costs beside the URI.
const subscriptionOverhead = 64

func subscriptionSize(uri string) int { return len(uri) + subscriptionOverhead }

// addSubscription adds a subscription and reports whether it already existed.
func (s *Session) addSubscription(uri string) (known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addSubscriptionLocked(uri)
}

func (s *Session) addSubscriptionLocked(uri string) (known bool, err error) {
	if _, known = s.subscriptions[uri]; known {
		return true, nil
	}
	size := subscriptionSize(uri)
	switch {
	case s.isClosed():
		return false, mcp.ErrClosed
	case len(s.subscriptions) >= maxSubscriptions:
		return false, mcp.Errorf(mcp.CodeInvalidParams, "the session has %d subscriptions, which is the limit", maxSubscriptions)
	case s.subscribed+size > maxSubscribed:
		return false, mcp.Errorf(mcp.CodeInvalidParams, "the subscriptions of the session have %d bytes, and this one has %d more; the limit is %d", s.subscribed, size, maxSubscribed)
	case s.details.Reserve != nil && !s.details.Reserve(size):
		return false, mcp.Errorf(mcp.CodeInternalError, "the sessions have too many subscriptions; cancel some, or try again later")
	}
	if s.subscriptions == nil {
		s.subscriptions = map[string]struct{}{}
	}
	s.subscriptions[uri] = struct{}{}
	s.subscribed += size
	return false, nil
}

// subscribedURIs returns the sorted URIs that the session is subscribed to.
func (s *Session) subscribedURIs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.subscriptions))
}

func (s *Session) removeSubscription(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeSubscriptionLocked(uri)
}

// removeSpellings removes the subscriptions to a URI, in any spelling.
func (s *Session) removeSpellings(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	form := uritemplate.Normal(uri)
	for other := range s.subscriptions {
		if uritemplate.Normal(other) == form {
			s.removeSubscriptionLocked(other)
		}
	}
}

func (s *Session) removeSubscriptionLocked(uri string) {
	if _, known := s.subscriptions[uri]; !known || s.isClosed() { // close has released everything
		return
	}
	delete(s.subscriptions, uri)
	size := subscriptionSize(uri)
	s.subscribed -= size
	if s.details.Reserve != nil {
		s.details.Reserve(-size)
	}
}

// isAccepted reports whether the handler accepts a subscription to uri. It subscribes, and
// cancels the subscription once the handler has acknowledged it. It costs a call, but needs
// no second interface.
func (s *Session) isAccepted(ctx context.Context, from Origin, uri string) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &probe{cancel: cancel}
	req := s.listenRequest(from, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	_, err := core.Serve(ctx, s.server.handler, req, p, s.server.Logger)
	if p.acknowledged {
		err = nil // the handler was cancelled
	}
	return slices.Contains(p.accepted, uri), err
}

// probe cancels a subscription once it is acknowledged.
type probe struct {
	cancel       context.CancelFunc
	acknowledged bool
	accepted     []string
}

// Notify receives the acknowledgement.
func (p *probe) Notify(_ context.Context, method string, params json.RawMessage) error {
	if method != mcp.NotificationAcknowledged {
		return mcp.ErrNotDelivered
	}
	var ack mcp.AcknowledgedParams
	_ = strictjson.Unmarshal(params, &ack) // if params cannot be read, nothing was accepted
	p.acknowledged, p.accepted = true, ack.Notifications.ResourceSubscriptions
	p.cancel()
	return nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
)

// A Subscription receives the changes at a server.
type Subscription struct {
	// Accepted is the part of the filter that the server accepts.
	Accepted SubscriptionFilter

	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error
}

// Listen subscribes to changes (subscriptions/listen), in both eras, and calls fn with
// each, one after the other, until ctx is done, [Subscription.Close] is called or the
// server ends the subscription. Listen returns once the server has acknowledged the
// subscription. Changes that wait while fn runs are merged with equal ones. After a break
// in the connection, fn is called for everything that may have changed meanwhile. Listen
// may be called in fn, and in the functions of [ClientOptions].
func (c *Conn) Listen(ctx context.Context, filter SubscriptionFilter, fn func(Change)) (*Subscription, error) {
	req, err := NewRequest(MethodListen, &ListenParams{Notifications: filter})
	if err != nil {
		return nil, err
	}
	req.ID = c.nextID()
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Subscription{cancel: cancel, done: make(chan struct{})}
	acknowledged := make(chan SubscriptionFilter, 1)
	notifier := &changeNotifier{
		acknowledged: func(_ context.Context, f SubscriptionFilter) {
			select {
			case acknowledged <- f:
			default: // only the first counts
			}
		},
		changed: func(_ context.Context, ch Change) error {
			if ctx.Err() == nil {
				c.callSafely(func() { fn(ch) })
			}
			return context.Cause(ctx)
		},
	}
	go func() {
		defer close(s.done)
		defer cancel(nil)
		_, s.err = Serve(ctx, HandlerFunc(c.serve), req, notifier, c.client.opts.Logger)
	}()
	return s.waitFor(acknowledged)
}

// waitFor returns the subscription once it is acknowledged, even if it has ended since.
func (s *Subscription) waitFor(acknowledged <-chan SubscriptionFilter) (*Subscription, error) {
	select {
	case s.Accepted = <-acknowledged:
		return s, nil
	case <-s.done:
	}
	select {
	case s.Accepted = <-acknowledged:
		return s, nil
	default:
	}
	if s.err == nil {
		s.err = errors.New("mcp: the server ended the subscription before it agreed to it")
	}
	return nil, s.err
}

// Subscribe subscribes to the updates of one resource; see [Conn.Listen]. It fails if the
// server does not accept the URI.
func (c *Conn) Subscribe(ctx context.Context, uri string, fn func(uri string)) (*Subscription, error) {
	s, err := c.Listen(ctx, SubscriptionFilter{ResourceSubscriptions: []string{uri}}, func(ch Change) { fn(ch.URI) })
	if err != nil {
		return nil, err
	}
	if len(s.Accepted.ResourceSubscriptions) == 0 {
		s.Close()
		return nil, ResourceNotFound(uri)
	}
	return s, nil
}

// Close ends the subscription. It may be called in the subscription's function.
func (s *Subscription) Close() { s.cancel(ErrClosed) }

// Done is closed when the subscription has ended. Err then returns the reason.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Err returns why the subscription ended, nil if the client or the server closed it. It
// must not be called before Done is closed.
func (s *Subscription) Err() error {
	if errors.Is(s.err, ErrClosed) || errors.Is(s.err, context.Canceled) {
		return nil
	}
	return s.err
}

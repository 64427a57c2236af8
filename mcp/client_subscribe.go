// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/made"
)

// A Subscription receives the changes at a server. It is created by [Conn.Listen],
// [Conn.Subscribe] or [Upstream.Listen].
type Subscription struct {
	accepted SubscriptionFilter
	cancel   context.CancelCauseFunc
	done     chan struct{}
	err      error
}

// Listen subscribes to changes (subscriptions/listen), in both eras. It returns once the server
// has acknowledged the subscription. fn, which must not be nil, is called for each change, one
// call at a time, until ctx is done, [Subscription.Close] is called or the server ends the
// subscription. While fn runs, equal pending changes are merged. After a break in the
// connection, fn is called for everything that may have changed in the meantime. Listen may be
// called from fn and from the functions of [ClientOptions].
func (c *Conn) Listen(ctx context.Context, filter SubscriptionFilter, fn func(Change)) (*Subscription, error) {
	c.mustBeMade()
	mustBeFunc("Conn.Listen", fn == nil)
	return startSubscription(ctx, HandlerFunc(c.serve), c.nextID(), filter, fn, c.client.opts.Logger)
}

// mustBeMade panics unless the Subscription was created by Listen or Subscribe.
func (s *Subscription) mustBeMade() {
	made.Check(s != nil && s.done != nil, "mcp: a Subscription", "Conn.Listen or Conn.Subscribe")
}

// startSubscription subscribes to changes at h; see [Conn.Listen].
func startSubscription(ctx context.Context, h Handler, id ID, filter SubscriptionFilter, fn func(Change), logger *slog.Logger) (*Subscription, error) {
	req, err := NewRequest(MethodListen, &ListenParams{Notifications: filter})
	if err != nil {
		return nil, err
	}
	req.ID = id
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
				_ = callSafely(logger, func() error { fn(ch); return nil })
			}
			return context.Cause(ctx)
		},
	}
	go func() {
		defer close(s.done)
		defer cancel(nil)
		_, s.err = serve(ctx, h, req, notifier, logger)
	}()
	return s.waitFor(acknowledged)
}

// waitFor returns the subscription once it is acknowledged, even if it has ended since.
func (s *Subscription) waitFor(acknowledged <-chan SubscriptionFilter) (*Subscription, error) {
	select {
	case s.accepted = <-acknowledged:
		return s, nil
	case <-s.done:
	}
	select {
	case s.accepted = <-acknowledged:
		return s, nil
	default:
	}
	if s.err == nil {
		s.err = errors.New("mcp: the server ended the subscription before it agreed to it")
	}
	return nil, s.err
}

// Subscribe subscribes to updates of one resource; see [Conn.Listen]. It returns an error
// if the server does not accept the URI.
func (c *Conn) Subscribe(ctx context.Context, uri string, fn func(uri string)) (*Subscription, error) {
	c.mustBeMade()
	mustBeFunc("Conn.Subscribe", fn == nil)
	s, err := c.Listen(ctx, SubscriptionFilter{ResourceSubscriptions: []string{uri}}, func(ch Change) { fn(ch.URI) })
	if err != nil {
		return nil, err
	}
	if len(s.accepted.ResourceSubscriptions) == 0 {
		_ = s.Close()
		if c.wire.Info().NoStream {
			return nil, errNoStream
		}
		return nil, NewResourceNotFoundError(uri)
	}
	return s, nil
}

var errNoStream = errors.New("mcp: the server has no stream for messages of its own, so it cannot report changes")

// Accepted returns the part of the filter that the server accepts. An older server without a
// stream for messages of its own, for example behind a route for POST only, accepts nothing.
func (s *Subscription) Accepted() SubscriptionFilter {
	s.mustBeMade()
	return s.accepted
}

// Close ends the subscription and returns nil. It does not wait, so it may be called from the
// subscription's function.
func (s *Subscription) Close() error {
	s.mustBeMade()
	s.cancel(ErrClosed)
	return nil
}

// Done returns a channel that is closed when the subscription has ended. Err then returns
// the reason.
func (s *Subscription) Done() <-chan struct{} {
	s.mustBeMade()
	return s.done
}

// Err returns the reason why the subscription ended. It is nil if the subscription has not
// ended, or if the client or the server closed it.
func (s *Subscription) Err() error {
	s.mustBeMade()
	if !isDone(s.done) {
		return nil
	}
	if errors.Is(s.err, ErrClosed) || errors.Is(s.err, context.Canceled) {
		return nil
	}
	return s.err
}

// A forwarder queues the notifications of one subscription at the server and sends them to
// the sender of the subscription request, under the ID of that request. Nothing is sent
// until the server has acknowledged the subscription.
type forwarder struct {
	subscriber subscriber
	end        context.CancelCauseFunc // ends the subscription at the server
	changes    *async.Set[Change]      // wakes the goroutine that sends everything queued

	mu           sync.Mutex
	accepted     *SubscriptionFilter // nil before the acknowledgement
	acknowledged bool                // the sender has received an acknowledgement
	others       []*Request          // notifications defined by an extension
	bytes        int                 // total size of others
}

// newForwarder returns the forwarder of a subscription. again means that the subscription
// is renewed: anything may have changed in the meantime, and the sender gets no
// acknowledgement.
func newForwarder(req *Request, again bool, end context.CancelCauseFunc) *forwarder {
	f := &forwarder{subscriber: newSubscriber(req), end: end, changes: newChanges(), acknowledged: again}
	if again {
		f.changes.AddAll()
	}
	return f
}

// receive handles a notification from the server and reports whether it belongs to the
// subscription.
func (f *forwarder) receive(note *Request) bool {
	if note.Method == NotificationAcknowledged {
		f.accept(parseAcknowledgement(note.Params()))
		return true
	}
	c, ok := parseChange(note.Method, note.Params())
	if !ok {
		return f.addOther(note)
	}
	f.changes.Add(c)
	return true
}

// addOther queues a notification defined by an extension. It returns false if the server
// did not accept such notifications for the subscription. If the queue is full, it drops
// the notification.
func (f *forwarder) addOther(note *Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.accepted == nil || len(f.accepted.Extra) == 0 || note.Meta()[MetaSubscriptionID] == nil {
		return false
	}
	if len(f.others) < maxUpdates && f.bytes+len(note.Params()) <= maxNoteBytes {
		f.others = append(f.others, note)
		f.bytes += len(note.Params())
		f.changes.Add() // wake the sender
	}
	return true
}

// accept stores the first acknowledgement.
func (f *forwarder) accept(filter *SubscriptionFilter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.accepted == nil {
		f.accepted = filter
		f.changes.Add() // wake the sender
	}
}

// send sends everything queued. It ignores errors, which mean that the sender is gone.
func (f *forwarder) send(ctx context.Context) {
	acknowledgement, changes, others := f.drain()
	if acknowledgement != nil {
		_ = f.subscriber.acknowledge(ctx, *acknowledgement)
	}
	_ = f.subscriber.notify(ctx, changes)
	for _, note := range others {
		_ = f.subscriber.forward(ctx, note.Method, note.Params())
	}
}

// drain removes and returns everything queued. It returns nothing before the
// acknowledgement, and the acknowledgement only once.
func (f *forwarder) drain() (acknowledgement *SubscriptionFilter, changes changeSet, others []*Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.accepted == nil {
		return nil, nil, nil
	}
	if !f.acknowledged {
		acknowledgement, f.acknowledged = f.accepted, true
	}
	changes, all := f.changes.Drain()
	if all {
		changes = everythingIn(f.accepted)
	}
	others = f.others
	f.others, f.bytes = nil, 0
	return acknowledgement, changes, others
}

// isAccepted reports whether the server has acknowledged the subscription.
func (f *forwarder) isAccepted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.accepted != nil
}

func (c *Conn) addForwarder(id ID, f *forwarder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forwarders[id] = f
}

func (c *Conn) removeForwarder(id ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.forwarders, id)
}

// forwarderOf returns the forwarder of the subscription that a notification names or on
// whose stream it arrived, or nil.
func (c *Conn) forwarderOf(note *Request, about ID) *forwarder {
	var id ID
	_ = note.Meta().Get(MetaSubscriptionID, &id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.forwarders[id.Canonical()]; f != nil {
		return f
	}
	return c.forwarders[about]
}

// errEndedByServer is the cancellation cause of a subscription that the server ended.
var errEndedByServer = errors.New("mcp: the server ended the subscription")

// endForwarder ends the subscription that a notifications/cancelled notification names, and
// reports whether there is one.
func (c *Conn) endForwarder(note *Request) bool {
	var p CancelledParams
	if note.Decode(&p) != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.forwarders[p.RequestID.Canonical()]
	if ok {
		f.end(errEndedByServer)
	}
	return ok
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// forwarder sends the notifications of a server's subscription to the sender of
// the request that began it, under that request's id.
type forwarder struct {
	conn  *Conn
	req   *Request
	meta  Meta
	again bool // the subscription was interrupted

	mu     sync.Mutex
	acked  bool
	passed chan struct{} // closed when the acknowledgement is passed on; nil if none is
}

func newForwarder(c *Conn, req *Request, again bool) *forwarder {
	f := &forwarder{conn: c, req: req, meta: Meta{}, again: again}
	f.meta.Set(MetaSubscriptionID, req.ID)
	return f
}

func (f *forwarder) acknowledged() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acked
}

// take takes a notification of the server's. Those of changes wait for their turn
// among all notifications, and for the acknowledgement, which does not: one of the
// client's functions may wait for it, and all others for that.
func (f *forwarder) take(note *Request) {
	if note.Method != NotificationAcknowledged {
		f.conn.notes.add(func() {
			f.await(f.conn.ctx)
			f.tell(note)
		})
		return
	}
	var p AcknowledgedParams
	if note.Decode(&p) != nil || !f.acknowledge() {
		return
	}
	if f.again {
		f.conn.notes.add(func() { f.missed(&p.Notifications) })
		return
	}
	go f.conn.notes.call(func() {
		defer close(f.passed)
		_ = f.req.Notify(f.conn.ctx, NotificationAcknowledged, &AcknowledgedParams{Notifications: p.Notifications, Meta: f.meta})
	})
}

// acknowledge notes an acknowledgement, and reports whether it is the first.
func (f *forwarder) acknowledge() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.acked {
		return false
	}
	f.acked = true
	if !f.again {
		f.passed = make(chan struct{})
	}
	return true
}

// await waits until the acknowledgement, if there was one, is passed on.
func (f *forwarder) await(ctx context.Context) {
	f.mu.Lock()
	passed := f.passed
	f.mu.Unlock()
	if passed == nil {
		return
	}
	select {
	case <-passed:
	case <-ctx.Done():
	case <-f.conn.ctx.Done():
	}
}

// settle waits until everything that came has been told. Before the server has agreed
// there is nobody to tell.
func (f *forwarder) settle(ctx context.Context) {
	if !f.acknowledged() {
		return
	}
	f.await(ctx)
	f.conn.notes.settle(ctx)
}

func (f *forwarder) tell(note *Request) {
	if note.Method == NotificationResourceUpdated {
		_ = f.req.Notify(f.conn.ctx, note.Method, &ResourceUpdatedParams{URI: note.Name(), Meta: f.meta})
		return
	}
	_ = f.req.Notify(f.conn.ctx, note.Method, map[string]Meta{"_meta": f.meta})
}

// missed tells of everything that may have been missed before the subscription was
// taken up again.
func (f *forwarder) missed(filter *SubscriptionFilter) {
	ctx := f.conn.ctx
	wants := filter.changes()
	for _, n := range changeNotifications {
		if wants&n.change != 0 {
			_ = f.req.Notify(ctx, n.method, map[string]Meta{"_meta": f.meta})
		}
	}
	for _, uri := range filter.ResourceSubscriptions {
		_ = f.req.Notify(ctx, NotificationResourceUpdated, &ResourceUpdatedParams{URI: uri, Meta: f.meta})
	}
}

// following is one subscription at the server.
type following struct {
	take func(note *Request)
	end  context.CancelCauseFunc
}

func (c *Conn) follow(id ID, f following) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subs[id] = f
}

func (c *Conn) unfollow(id ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.subs, id)
}

// A Subscription tells of changes at the server.
type Subscription struct {
	// Accepted is the part of the filter that the server honours.
	Accepted SubscriptionFilter

	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error
}

// A Change is something that a subscription tells: a list that changed, by the
// method of its notification, or a resource that did, by its URI.
type Change struct {
	Method string
	URI    string // of NotificationResourceUpdated
}

// Listen subscribes to changes (subscriptions/listen), in both eras, and calls fn
// with each, one after the other, until ctx is done, [Subscription.Close] or the
// server ends it. It returns when the server has agreed. After a break in the
// connection fn is told of everything that may have been missed. Listen may be called
// in fn, and in the functions of [ClientOptions].
func (c *Conn) Listen(ctx context.Context, filter SubscriptionFilter, fn func(Change)) (*Subscription, error) {
	req, err := NewRequest(MethodListen, &ListenParams{Notifications: filter})
	if err != nil {
		return nil, err
	}
	req.ID = c.nextID()
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Subscription{cancel: cancel, done: make(chan struct{})}
	acknowledged := make(chan SubscriptionFilter, 1)
	go func() {
		defer close(s.done)
		defer cancel(nil)
		_, s.err = Serve(ctx, HandlerFunc(c.serve), req, &subscriber{fn, acknowledged}, c.client.opts.Logger)
	}()
	select {
	case s.Accepted = <-acknowledged:
		return s, nil
	case <-s.done:
		select {
		case s.Accepted = <-acknowledged: // and ended at once
			return s, nil
		default:
		}
		if s.err == nil {
			s.err = errors.New("mcp: the server ended the subscription before it agreed to it")
		}
		return nil, s.err
	}
}

// Subscribe subscribes to the updates of one resource; see [Conn.Listen]. It fails
// if the server does not agree.
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

// Close ends the subscription; it may be called from the subscription's function.
func (s *Subscription) Close() { s.cancel(ErrClosed) }

// Done is closed when the subscription has ended; Err then says why, nil if one of
// the sides ended it in good order.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Err is why the subscription ended; it is to be called after Done is closed.
func (s *Subscription) Err() error {
	if errors.Is(s.err, ErrClosed) || errors.Is(s.err, context.Canceled) {
		return nil
	}
	return s.err
}

type subscriber struct {
	fn           func(Change)
	acknowledged chan<- SubscriptionFilter
}

func (s *subscriber) Notify(_ context.Context, method string, params json.RawMessage) error {
	if method == NotificationAcknowledged {
		var p AcknowledgedParams
		if err := unmarshal(params, &p); err != nil {
			return err
		}
		select {
		case s.acknowledged <- p.Notifications:
		default:
		}
		return nil
	}
	var p ResourceUpdatedParams
	if method == NotificationResourceUpdated {
		if err := unmarshal(params, &p); err != nil {
			return err
		}
	}
	s.fn(Change{method, p.URI})
	return nil
}

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
// the request that began it, under that request's id. They wait in a queue of their own: a
// sender who is slow keeps nobody else waiting.
type forwarder struct {
	conn  *Conn
	req   *Request
	meta  Meta
	again bool // the subscription was interrupted
	queue *noteQueue

	mu    sync.Mutex
	acked bool
	lost  bool               // notifications were dropped since the last was told
	agree SubscriptionFilter // what the server has acknowledged
}

func newForwarder(c *Conn, req *Request, again bool) *forwarder {
	f := &forwarder{conn: c, req: req, meta: Meta{}, again: again}
	f.meta.Set(MetaSubscriptionID, req.ID)
	f.queue = newNoteQueue(c, f.full)
	f.queue.held = true // until the server agrees
	return f
}

// full is called when the sender is too slow. What is dropped has an end like the loss of
// a connection: everything may have changed.
func (f *forwarder) full() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = true
}

func (f *forwarder) acknowledged() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acked
}

// take takes a notification of the server's, and reports whether it is of a subscription.
// Those of changes wait for the acknowledgement.
func (f *forwarder) take(note *Request) bool {
	switch note.Method {
	case NotificationAcknowledged:
		var p AcknowledgedParams
		if note.Decode(&p) == nil && f.acknowledge(&p.Notifications) {
			f.queue.start()
		}
	case NotificationResourceUpdated, NotificationToolsListChanged, NotificationPromptsListChanged, NotificationResourcesListChanged:
		f.queue.add(len(note.Params()), func() { f.tell(note) })
	default:
		return false
	}
	return true
}

// acknowledge notes an acknowledgement, and reports whether it is the first. It goes before
// everything that waits.
func (f *forwarder) acknowledge(accepted *SubscriptionFilter) bool {
	f.mu.Lock()
	if f.acked {
		f.mu.Unlock()
		return false
	}
	f.acked, f.agree = true, *accepted
	f.mu.Unlock()
	first := func() { f.missed() }
	if !f.again {
		first = func() {
			_ = f.req.Notify(f.conn.ctx, NotificationAcknowledged, &AcknowledgedParams{Notifications: *accepted, Meta: f.meta})
		}
	}
	f.queue.addFirst(first)
	return true
}

// settle waits until everything that came has been told. Before the server has agreed
// there is nobody to tell.
func (f *forwarder) settle(ctx context.Context) {
	if f.acknowledged() {
		f.queue.settle(ctx)
	}
	f.queue.close()
}

func (f *forwarder) tell(note *Request) {
	if f.wasLost() {
		f.missed()
		return
	}
	if note.Method == NotificationResourceUpdated {
		_ = f.req.Notify(f.conn.ctx, note.Method, &ResourceUpdatedParams{URI: note.Name(), Meta: f.meta})
		return
	}
	_ = f.req.Notify(f.conn.ctx, note.Method, map[string]Meta{"_meta": f.meta})
}

func (f *forwarder) wasLost() (lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost, f.lost = f.lost, false
	return lost
}

// missed tells of everything that may have been missed before the subscription was
// taken up again.
func (f *forwarder) missed() {
	ctx, filter := f.conn.ctx, &f.agree // which does not change any more
	for _, n := range changeNotifications {
		if filter.changes()&n.change != 0 {
			_ = f.req.Notify(ctx, n.method, map[string]Meta{"_meta": f.meta})
		}
	}
	for _, uri := range filter.ResourceSubscriptions {
		_ = f.req.Notify(ctx, NotificationResourceUpdated, &ResourceUpdatedParams{URI: uri, Meta: f.meta})
	}
}

// following is one subscription at the server.
type following struct {
	take func(note *Request) bool
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"time"
)

// received takes what the server says of its own accord: questions, pings, and
// changes.
func (e *legacyClient) received(m Message, about ID) {
	switch {
	case m.Request == nil:
		e.missed()
		go e.check()
	case !m.Request.IsNotification():
		e.asked(m.Request, about)
	case m.Request.Method == NotificationCancelled:
		e.withdrawn(m.Request)
	default:
		e.changed(m.Request)
		e.conn.notified(m.Request, about)
	}
}

// changed tells those who listen of a change.
func (e *legacyClient) changed(note *Request) {
	if note.Method == NotificationResourceUpdated {
		e.hub.updated(note.Name())
		return
	}
	for _, n := range changeNotifications {
		if n.method == note.Method {
			e.hub.changed(n.change)
		}
	}
}

// missed tells everybody that everything may have changed: nobody knows what was
// lost.
func (e *legacyClient) missed() {
	e.mu.Lock()
	uris := sortedKeys(e.subscribed)
	e.mu.Unlock()
	for _, uri := range uris {
		e.hub.updated(uri)
		e.conn.tellLater(NotificationResourceUpdated, &ResourceUpdatedParams{URI: uri})
	}
	server := e.conn.Server()
	if server == nil {
		return
	}
	caps := server.Capabilities
	for _, n := range changeNotifications {
		if caps.tellsOf(n.change) {
			e.hub.changed(n.change)
			e.conn.tellLater(n.method, nil)
		}
	}
}

// asked answers a request of the server in the background; a question that there
// is no function for goes to the sender of the call that it belongs to.
func (e *legacyClient) asked(req *Request, about ID) {
	q := InputRequest{Method: req.Method, Params: req.Params()}
	if req.Method != legacyPing && !e.conn.client.answers(q) && e.travels(req.ID, q, about) {
		return
	}
	go e.answerAs(req.ID, q)
}

// answering is a question that is being answered.
type answering struct{ cancel context.CancelCauseFunc }

// answerAs answers a question until the server withdraws it.
func (e *legacyClient) answerAs(id ID, q InputRequest) {
	ctx, cancel := context.WithCancelCause(e.conn.ctx)
	defer cancel(nil)
	own := &answering{cancel}
	e.mu.Lock()
	e.answering[id] = own
	e.mu.Unlock()
	e.answer(ctx, id, q)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answering[id] == own { // and not the question of another session
		delete(e.answering, id)
	}
}

func (e *legacyClient) answer(ctx context.Context, id ID, q InputRequest) {
	result, err := []byte("{}"), error(nil)
	if q.Method != legacyPing {
		result, err = e.conn.answer(ctx, q)
	}
	if wasCancelled(ctx) {
		return
	}
	e.reply(ctx, id, result, err)
}

func (e *legacyClient) reply(ctx context.Context, id ID, result []byte, err error) {
	env := &Envelope{ID: id, Version: e.version(), Body: appendAnswer(nil, id, result, err)}
	if err := e.conn.wire.Send(ctx, env); err != nil {
		e.conn.client.opts.Logger.DebugContext(ctx, "mcp: an answer was not sent", "error", err)
	}
}

// withdrawn ends the answering of a question that the server does not need answered
// any more.
func (e *legacyClient) withdrawn(note *Request) {
	var p CancelledParams
	if note.Decode(&p) != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.answering[p.RequestID]; a != nil {
		a.cancel(&CancelError{Reason: p.Reason})
	}
}

// listen makes a subscription of what the server tells unasked, and of what it
// tells after resources/subscribe.
func (e *legacyClient) listen(ctx context.Context, req *Request) (Result, error) {
	var p ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	accepted, err := e.accept(ctx, &p.Notifications)
	if err != nil {
		return nil, err
	}
	defer e.unsubscribe(ctx, accepted.ResourceSubscriptions)
	s := newSubscription(req, accepted)
	e.hub.add(s.listener)
	defer e.hub.remove(s.listener)
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
				return nil, err
			}
			continue // it is left out of what is acknowledged
		}
		accepted.ResourceSubscriptions = append(accepted.ResourceSubscriptions, uri)
	}
	return accepted, nil
}

func (e *legacyClient) subscribe(ctx context.Context, uri string) error {
	e.mu.Lock()
	e.subscribed[uri]++
	first := e.subscribed[uri] == 1
	e.mu.Unlock()
	if !first {
		return nil
	}
	err := e.inSession(ctx, func() error { return e.command(ctx, legacySubscribe, map[string]string{"uri": uri}) })
	if err != nil {
		e.release(uri)
	}
	return err
}

// release counts one listener less, and reports whether it was the last.
func (e *legacyClient) release(uri string) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subscribed[uri]--
	if e.subscribed[uri] > 0 {
		return false
	}
	delete(e.subscribed, uri)
	return true
}

// checkTime bounds how long a session is checked.
const checkTime = 10 * time.Second

// unsubscribeTime bounds how long the end of a subscription waits for the server.
const unsubscribeTime = 5 * time.Second

func (e *legacyClient) unsubscribe(ctx context.Context, uris []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTime)
	defer cancel()
	for _, uri := range uris {
		if e.release(uri) && e.conn.ctx.Err() == nil {
			_ = e.command(ctx, legacyUnsubscribe, map[string]string{"uri": uri}) // the server may be gone
		}
	}
}

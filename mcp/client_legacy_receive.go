// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "context"

// received handles the messages that the server sends unasked: requests, pings and
// notifications.
func (e *legacyClient) receive(m Message, about ID) {
	switch {
	case m.Request == nil:
		e.publishEverything()
		e.checkSoon()
	case !m.Request.IsNotification():
		e.asked(m.Request, about)
	case m.Request.Method == NotificationCancelled:
		e.withdrawn(m.Request)
	default:
		if c, ok := parseChange(m.Request.Method, m.Request.Params()); ok {
			e.hub.publish(c)
		}
		e.conn.receiveNotification(m.Request, about)
	}
}

// asked answers a request of the server in the background; a question that there
// is no function for goes to the sender of the call that it belongs to. It is among
// those that are being answered before anything is received after it, such as that it
// is withdrawn.
func (e *legacyClient) asked(req *Request, about ID) {
	q := InputRequest{Method: req.Method, Params: req.Params()}
	if req.Method != legacyPing && !e.conn.client.answers(q) && e.travels(req.ID, q, about) {
		return
	}
	e.reaction(req, nil, func(ctx context.Context) { e.answer(ctx, req.ID, q) })
}

// unreadable refuses a request that could not be read.
func (e *legacyClient) refuse(m Message) { e.reaction(m.Request, m.Err, nil) }

// reaction answers a request in the background, with a refusal if there is one.
func (e *legacyClient) reaction(req *Request, refused *Error, answer func(context.Context)) {
	ctx, own := e.beginAnswer(req.ID)
	if own == nil {
		e.conn.logDropped("it asks too much", "method", excerpt(req.Method))
		return
	}
	if own.refused == nil && refused != nil {
		own.refused = refused
	}
	go func() {
		defer e.endAnswer(req.ID, own)
		switch {
		case req.Method != legacyPing && !e.isReady(ctx): // nobody answers questions of a server that is not known yet
		case own.refused != nil:
			e.reply(ctx, req.ID, nil, own.refused)
		default:
			answer(ctx)
		}
	}()
}

// isReady waits for the handshake, and reports whether it was made.
func (e *legacyClient) isReady(ctx context.Context) bool {
	select {
	case <-e.ready:
		return true
	case <-ctx.Done():
		select {
		case <-e.ready:
			return true
		default:
			return false
		}
	}
}

// answering is a question that is being answered, until the server withdraws it.
type answering struct {
	cancel  context.CancelCauseFunc
	refused error // nil if it is not
}

// beginAnswer enters a question among those that are being answered. Beyond maxInFlight
// they are refused, and beyond twice as many dropped, which is nil: a server that does
// not even read the refusals.
func (e *legacyClient) beginAnswer(id ID) (context.Context, *answering) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy >= 2*maxInFlight {
		return nil, nil
	}
	own := new(answering)
	if e.busy >= maxInFlight {
		own.refused = tooMany(maxInFlight)
	}
	e.busy++
	var ctx context.Context
	ctx, own.cancel = context.WithCancelCause(e.conn.ctx)
	e.answering[id.Canonical()] = own
	return ctx, own
}

func (e *legacyClient) endAnswer(id ID, own *answering) {
	own.cancel(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy--
	if id = id.Canonical(); e.answering[id] == own { // and not the question of another session
		delete(e.answering, id)
	}
}

func (e *legacyClient) answer(ctx context.Context, id ID, q InputRequest) {
	result, err := []byte("{}"), error(nil)
	if q.Method != legacyPing {
		resume := e.conn.pauseCalls()
		result, err = e.conn.answer(ctx, q)
		resume()
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
	if a := e.answering[p.RequestID.Canonical()]; a != nil {
		a.cancel(&CancelError{Reason: p.Reason})
	}
}

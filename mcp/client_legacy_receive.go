// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp/transport"
)

// receive handles the messages that the server sends unasked: requests, pings and
// notifications.
func (e *legacyClient) receive(m transport.Message, about ID) {
	switch {
	case m.Method == "":
		e.publishEverything()
		e.checkSoon()
	case m.IsRequest():
		req, err := requestOf(&m)
		if err != nil {
			e.respond(req, asError(err), nil)
			return
		}
		e.answerInBackground(req, about)
	default:
		if note := e.conn.notification(&m); note != nil {
			e.receiveNotification(note, about)
		}
	}
}

func (e *legacyClient) receiveNotification(note *Request, about ID) {
	if note.Method == NotificationCancelled {
		e.withdrawQuestion(note)
		return
	}
	if c, ok := parseChange(note.Method, note.Params()); ok {
		e.hub.publish(c)
	}
	e.conn.receiveNotification(note, about)
}

// answerInBackground answers a request of the server in a goroutine. A question that the
// client has no function for is passed on to the sender of the call that it belongs to. The
// question is registered before the next message is received, which may withdraw it.
func (e *legacyClient) answerInBackground(req *Request, about ID) {
	q := InputRequest{Method: req.Method, Params: req.Params()}
	if req.Method != revision.Ping && !e.conn.client.answers(q) && e.passOn(req.ID, q, about) {
		return
	}
	e.respond(req, nil, func(ctx context.Context) { e.answer(ctx, req.ID, q) })
}

// refuse refuses a request that could not be read.
func (e *legacyClient) refuse(m transport.Message) {
	e.respond(&Request{Method: m.Method, ID: m.ID}, asError(m.Err), nil)
}

// respond responds to a request in a goroutine: with an error if it is refused, otherwise by
// calling answer. Requests other than pings wait for the handshake.
func (e *legacyClient) respond(req *Request, refused *Error, answer func(context.Context)) {
	ctx, own := e.addQuestion(req.ID)
	if own == nil {
		e.conn.logDropped("it asks too much", "method", excerpt(req.Method))
		return
	}
	if own.refused == nil && refused != nil {
		own.refused = refused
	}
	go func() {
		defer e.removeQuestion(req.ID, own)
		switch {
		case req.Method != revision.Ping && !e.awaitReady(ctx): // the connection was closed before
		case own.refused != nil:
			e.reply(ctx, req.ID, nil, own.refused)
		default:
			answer(ctx)
		}
	}()
}

// awaitReady waits for the first handshake, and reports whether it was made.
func (e *legacyClient) awaitReady(ctx context.Context) bool {
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

// A question is a request of the server that is being answered.
type question struct {
	cancel  context.CancelCauseFunc
	refused error // why the question is refused; nil if it is not
}

// addQuestion registers a question. If there are maxInFlight already, the question is to be
// refused. If there are twice as many, the server does not read the refusals either, and
// addQuestion returns nil: the question is dropped.
func (e *legacyClient) addQuestion(id ID) (context.Context, *question) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answering >= 2*maxInFlight {
		return nil, nil
	}
	own := new(question)
	if e.answering >= maxInFlight {
		own.refused = tooMany(maxInFlight)
	}
	e.answering++
	var ctx context.Context
	ctx, own.cancel = context.WithCancelCause(e.conn.ctx)
	e.questions[id.Canonical()] = own
	return ctx, own
}

func (e *legacyClient) removeQuestion(id ID, own *question) {
	own.cancel(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answering--
	if id = id.Canonical(); e.questions[id] == own { // it may be a question of the next session
		delete(e.questions, id)
	}
}

// answer answers a question by calling a function of the client.
func (e *legacyClient) answer(ctx context.Context, id ID, q InputRequest) {
	result, err := []byte("{}"), error(nil)
	if q.Method != revision.Ping {
		resume := e.conn.pauseCalls()
		result, err = e.conn.answer(ctx, q)
		resume()
	}
	if wasCancelled(ctx) {
		return
	}
	e.reply(ctx, id, result, err)
}

// reply sends the response to a question.
func (e *legacyClient) reply(ctx context.Context, id ID, result []byte, err error) {
	env := &transport.Outgoing{ID: id, Version: e.version(), Body: appendAnswer(nil, id, result, err)}
	if err := e.conn.wire.Send(ctx, env); err != nil {
		e.conn.client.opts.Logger.DebugContext(ctx, "mcp: an answer was not sent", "error", err)
	}
}

// withdrawQuestion cancels a question that the server has cancelled.
func (e *legacyClient) withdrawQuestion(note *Request) {
	var p CancelledParams
	if note.Decode(&p) != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if q := e.questions[p.RequestID.Canonical()]; q != nil {
		q.cancel(&CancelError{Reason: p.Reason})
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp/transport"
)

// maxInFlight limits the number of server requests in flight.
const maxInFlight = 1024

func tooMany(limit int) *transport.Error {
	return &transport.Error{
		Code:    codeInternalError,
		Message: fmt.Sprintf("%d requests are being served, which is the limit; send this one again later", limit),
	}
}

func isPing(m *transport.Message) bool { return m.Method == revision.Ping }

// A question is a server request that is being answered.
type question struct {
	about   transport.ID // the call whose stream carried it; zero if unknown
	cancel  context.CancelCauseFunc
	refused *transport.Error // why the question is refused; nil if it is not

	isAdmitted bool // it counts in session.admission
	size       int  // of its params, in bytes
}

// respond responds to a request in a goroutine. If refused is not nil, it is the response;
// otherwise respond calls answer. Requests other than pings wait for the handshake. About
// is the call whose stream carried the request.
func (s *session) respond(m *transport.Message, refused *transport.Error, answer func(context.Context)) {
	ctx, own := s.addQuestion(s.ctx, m.ID, m.About)
	if own == nil {
		s.conn.client.LogDropped("it asks too much", "method", m.Method)
		return
	}
	switch {
	case own.refused != nil:
	case refused != nil:
		own.refused = refused
	case s.conn.client.Answers(m.Method, m.Params):
		own.size = len(m.Params)
		own.refused = s.admit(own, m.Method)
	}
	id, isPing := m.ID, isPing(m)
	if own.refused != nil {
		answer = nil // it has the params, which need not be kept until the server reads the refusal
	}
	go func() {
		defer s.removeQuestion(id, own)
		switch {
		case !isOpen(ctx, s.connected), !isPing && !isOpen(ctx, s.ready): // closed first
		case own.refused != nil:
			_ = s.reply(ctx, id, nil, own.refused) // reply logs the error
		case own.isAdmitted:
			s.answerInTurn(ctx, answer)
		default:
			answer(ctx)
		}
	}()
}

// isOpen waits until a channel is closed. It returns false if ctx is done first.
func isOpen(ctx context.Context, closed <-chan struct{}) bool {
	select {
	case <-closed:
		return true
	case <-ctx.Done():
		select {
		case <-closed:
			return true
		default:
			return false
		}
	}
}

// addQuestion registers a question. The returned context is cancelled when the question is
// withdrawn, the call that it is about is cancelled, or the session is lost. If maxInFlight
// questions are registered already, the question is marked as refused. If there are twice
// as many, the server does not read the refusals either, so addQuestion returns nil and the
// question is dropped.
func (s *session) addQuestion(ctx context.Context, id, about transport.ID) (context.Context, *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answering >= 2*maxInFlight {
		return nil, nil
	}
	own := &question{about: about}
	if s.answering >= maxInFlight {
		own.refused = tooMany(maxInFlight)
	}
	s.answering++
	ctx, own.cancel = context.WithCancelCause(ctx)
	s.questions[id.Canonical()] = own
	return ctx, own
}

func (s *session) removeQuestion(id transport.ID, own *question) {
	own.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answering--
	if own.isAdmitted {
		s.admission.open--
		s.admission.size -= own.size
	}
	if id = id.Canonical(); s.questions[id] == own { // the next session may have reused the ID
		delete(s.questions, id)
	}
}

// serveQuestion answers a question by calling the client. Pings get an empty result.
func (s *session) serveQuestion(ctx context.Context, m *transport.Message) {
	result, refused := json.RawMessage("{}"), (*transport.Error)(nil)
	if !isPing(m) {
		result, refused = s.conn.client.Answer(ctx, m.Method, m.Params)
	}
	if withdrawn := errors.Is(context.Cause(ctx), context.Canceled); !withdrawn {
		_ = s.reply(ctx, m.ID, result, refused) // reply logs the error
	}
}

// replyInSession sends the response to a question that was passed on. If the session in
// which it was asked is lost, replyInSession sends nothing, because another question in the
// next session may have the same ID. It returns an error if the server is still waiting for
// the response.
func (s *session) replyInSession(ctx context.Context, generation int, id transport.ID, result json.RawMessage, refused *transport.Error) error {
	asking, own := s.addQuestion(ctx, id, transport.ID{})
	if own == nil {
		return errTooManyAnswers
	}
	defer s.removeQuestion(id, own)
	if !s.isCurrent(generation) { // if it is lost later, asking is cancelled
		return nil
	}
	err := s.reply(asking, id, result, refused)
	if asking.Err() != nil && ctx.Err() == nil {
		return nil // the question was withdrawn
	}
	return err
}

var errTooManyAnswers = fmt.Errorf("mcp: %d answers are being sent, which is the limit", 2*maxInFlight)

// reply sends the response to a question, and retries if that fails.
func (s *session) reply(ctx context.Context, id transport.ID, result json.RawMessage, refused *transport.Error) error {
	var body []byte
	if refused != nil {
		body = transport.AppendError(nil, id, refused)
	} else {
		body = transport.AppendResult(nil, id, result)
	}
	for n := 0; ; n++ {
		err := s.send(ctx, &transport.Outgoing{ID: id, Body: body})
		if err == nil || ctx.Err() != nil || s.ctx.Err() != nil {
			return err
		}
		if n == replyRetries || async.Sleep(ctx, async.Backoff(firstReplyDelay, lastReplyDelay, n)) != nil {
			s.conn.opts.Logger.WarnContext(ctx, "mcp: an answer was not sent", "error", err)
			return err
		}
	}
}

// A response that could not be sent is sent again replyRetries times, because the server is
// waiting for it. The server accepts only one response to each question.
const (
	replyRetries    = 6
	firstReplyDelay = 250 * time.Millisecond
	lastReplyDelay  = 8 * time.Second
)

// withdrawAbout cancels the questions about a cancelled call, because the stream on which
// the server would cancel them has ended.
func (s *session) withdrawAbout(call transport.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.questions {
		if q.about == call {
			q.cancel(s.conn.client.Withdrawn("the call was cancelled"))
		}
	}
}

// withdraw handles the cancellation of a question by the server.
func (s *session) withdraw(params json.RawMessage) {
	id, ok := transport.ParseID(jsonscan.Member(params, "requestId"))
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.questions[id.Canonical()]; q != nil {
		q.cancel(s.conn.client.Withdrawn(text(jsonscan.Member(params, "reason"))))
	}
}

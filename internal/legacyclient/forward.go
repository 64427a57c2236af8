// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/inflight"
	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/transport"
)

// A pendingCall is a call to the server whose questions are returned to the caller as
// results. An input_required result contains the questions, and the request with the
// answers names the call by its handle.
type pendingCall struct {
	id        transport.ID // of the request to the server
	handle    string
	caller    inflight.Caller
	ctx       context.Context //nolint:containedctx // of the call, which several requests wait for
	cancel    context.CancelCauseFunc
	done      chan struct{} // closed when the outcome is set
	outcome   outcome
	questions chan forwardedQuestion
	expiry    *time.Timer

	mu      sync.Mutex
	latest  *transport.Outgoing          // the latest request for the call
	waiting int                          // requests waiting for the call; a proxy may repeat one
	asked   map[string]forwardedQuestion // questions passed on, by key, without params
	size    int                          // of the params in questions, in bytes
}

type outcome struct {
	answer *transport.Message
	err    error
}

type forwardedQuestion struct {
	id         transport.ID
	generation int // of the session
	method     string
	params     json.RawMessage
}

// Limits on pending calls: how long they wait for the next request, and how many there may
// be. Callers of waiting calls must be remembered at least as long.
const (
	pendingTime = inflight.AbandonedTime
	maxPending  = 1024
)

// forward sends a request or, if it contains the handle of a pending call, passes its
// answers to that call. It returns the result of the call or its next questions. If the
// request is cancelled and no other request is waiting for the call, the call is cancelled
// too.
func (s *session) forward(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	p, refused := s.pendingCall(ctx, m)
	if refused != nil {
		return errorResponse(m.ID, refused), nil
	}
	s.countWaiting(p, 1)
	select {
	case <-p.done:
		s.forget(p)
		return p.outcome.answer, p.outcome.err
	case q := <-p.questions:
		s.countWaiting(p, -1)
		return p.inputRequired(m.ID, q), nil
	case <-ctx.Done():
		if s.countWaiting(p, -1) == 0 {
			p.cancel(context.Cause(ctx))
			s.forget(p)
		}
		return nil, context.Cause(ctx)
	}
}

// countWaiting adds n to the number of requests that wait for a call, and returns it. Between
// the requests, the call is parked.
func (s *session) countWaiting(p *pendingCall, n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting += n
	s.inFlight.Park(p.id, p.waiting == 0)
	return p.waiting
}

// abandonTime is how long a server may take to end a call whose questions will not be
// answered. The questions are answered with an error first: a cancelled call would count as
// abandoned for ten minutes, while a server that gets an error ends the call itself.
const abandonTime = 5 * time.Second

// Abandon is called if the questions of a pending call, whose handle is given, will not be
// answered. It refuses them, so that the server ends the call, and cancels the call if the
// server does not.
func (c *Conn) Abandon(handle string) {
	s := c.current.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		if p.handle == handle {
			p.expiry.Reset(abandonTime)
			go func() { _ = s.answerPending(p.ctx, p, p.latestRequest(), nil) }() // nobody waits for an error
		}
	}
}

// pendingCall returns the call that a request continues, or starts a new one.
func (s *session) pendingCall(ctx context.Context, m *transport.Outgoing) (*pendingCall, *transport.Error) {
	params := jsonscan.Member(m.Body, "params")
	state := jsonscan.Member(params, "requestState")
	if state == nil {
		return s.startPending(ctx, m)
	}
	p := s.findPending(text(state), inflight.CallerFromContext(ctx))
	if p == nil {
		return nil, &transport.Error{Code: codeInvalidParams, Message: "params.requestState names no call that is waiting here"}
	}
	p.expiry.Reset(pendingTime)
	return p, s.answerPending(ctx, p, m, jsonscan.Member(params, "inputResponses"))
}

// answerPending passes answers on to the server. The server waits for a response to each of
// its questions, so a missing answer is sent as a refusal. If answerPending returns an
// error, the request may be sent again.
func (s *session) answerPending(ctx context.Context, p *pendingCall, m *transport.Outgoing, responses json.RawMessage) *transport.Error {
	answers := map[string]json.RawMessage{}
	if responses != nil && strictjson.Unmarshal(responses, &answers) != nil {
		return &transport.Error{Code: codeInvalidParams, Message: "params.inputResponses must be an object of answers"}
	}
	p.mu.Lock()
	asked := p.asked
	p.latest, p.asked = m, map[string]forwardedQuestion{}
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)() // a call that has ended does not need answers
	var failed *transport.Error
	for key, q := range asked {
		answer, refused := answers[key], (*transport.Error)(nil)
		if answer == nil {
			refused = &transport.Error{Code: revision.CodeUserRejectedRequest, Message: "the question was not answered"}
		}
		// reply logs the error.
		err := s.replyInSession(ctx, q.generation, q.id, answer, refused)
		if err != nil && ctx.Err() == nil { // the call is still in progress
			p.askAgain(key, q)
			failed = &transport.Error{Code: codeInternalError, Message: "an answer could not be passed to the server; send the request again"}
		}
	}
	return failed
}

// askAgain reopens a question whose answer could not be sent.
func (p *pendingCall) askAgain(key string, q forwardedQuestion) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[key] = q
}

// startPending makes a call in a goroutine. The call outlives the request that started it.
func (s *session) startPending(ctx context.Context, m *transport.Outgoing) (*pendingCall, *transport.Error) {
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &pendingCall{
		id: m.ID, handle: rand.Text(), caller: inflight.CallerFromContext(ctx), ctx: detached, cancel: cancel, latest: m, asked: map[string]forwardedQuestion{},
		done: make(chan struct{}), questions: make(chan forwardedQuestion, s.conn.opts.MaxQuestions),
	}
	p.expiry = time.AfterFunc(pendingTime, func() {
		cancel(fmt.Errorf("mcp: the questions about %s were not answered in time: %w", m.Method, context.DeadlineExceeded))
		s.forget(p)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= maxPending {
		p.expiry.Stop()
		cancel(nil)
		return nil, tooMany(maxPending)
	}
	s.pending[p.id] = p
	go func() {
		r, err := s.callInSession(detached, m)
		p.outcome = outcome{r, err}
		close(p.done)
		cancel(nil)
	}()
	return p, nil
}

// latestRequest returns the latest request for the call.
func (p *pendingCall) latestRequest() *transport.Outgoing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest
}

// findPending returns the caller's pending call with the given handle, or nil.
func (s *session) findPending(handle string, caller inflight.Caller) *pendingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		if p.handle == handle && p.caller == caller {
			return p
		}
	}
	return nil
}

// pendingByID returns the pending call whose request to the server has the given ID, or
// nil.
func (s *session) pendingByID(id transport.ID) *pendingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id.Canonical()]
}

// forget cancels and removes a pending call.
func (s *session) forget(p *pendingCall) {
	p.expiry.Stop()
	p.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, p.id)
}

// forwardQuestion makes a question a result of the call that it belongs to. If the stream does not
// identify the call, the question is passed on only if it can belong to just one call, and
// is refused otherwise. forwardQuestion returns false if the question is not about a pending call.
func (s *session) forwardQuestion(m *transport.Message) bool {
	if !s.conn.opts.Forward || !isQuestion(m.Method) {
		return false
	}
	var refused *transport.Error
	call, err := s.inFlight.Attribute(m.About)
	if err == nil {
		p := s.pendingByID(call)
		if p == nil {
			return false
		}
		refused = s.addForwarded(p, forwardedQuestion{m.ID, s.currentGeneration(), m.Method, m.Params})
	} else {
		refused = &transport.Error{Message: err.Error()}
	}
	if refused != nil {
		s.conn.client.LogDropped("the question cannot be passed on", "method", m.Method, "error", sparse.Excerpt(refused.Message))
		s.respond(m, &transport.Error{Code: codeInvalidRequest, Message: "the question cannot be passed on: " + refused.Message}, nil)
	}
	return true
}

// addForwarded adds a question for the caller. It returns an error if the caller did not
// declare the required capability or has too many open questions.
func (s *session) addForwarded(p *pendingCall, q forwardedQuestion) *transport.Error {
	meta := jsonscan.Member(jsonscan.Member(p.latestRequest().Body, "params"), "_meta")
	if refused := s.conn.client.MayAsk(jsonscan.Member(meta, metaCapabilities), q.method, q.params); refused != nil {
		return refused
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size > 0 && p.size+len(q.params) > maxAskedSize {
		return tooLarge()
	}
	select {
	case p.questions <- q:
		p.size += len(q.params)
		return nil
	default:
		return tooMany(cap(p.questions))
	}
}

// inputRequired is a result that passes questions on.
type inputRequired struct {
	ResultType    string                  `json:"resultType"`
	InputRequests map[string]inputRequest `json:"inputRequests"`
	RequestState  string                  `json:"requestState,omitzero"`
}

type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// inputRequired returns a result with the question first and the questions already queued, which
// are at most as many as a caller can be asked at once.
func (p *pendingCall) inputRequired(id transport.ID, first forwardedQuestion) *transport.Message {
	result := inputRequired{ResultType: "input_required", InputRequests: map[string]inputRequest{}, RequestState: p.handle}
	p.mu.Lock()
	defer p.mu.Unlock()
	for next := first; ; {
		key := "q" + next.id.String()
		p.asked[key] = forwardedQuestion{id: next.id, generation: next.generation}
		p.size -= len(next.params)
		if next.params == nil {
			next.params = json.RawMessage("{}")
		}
		result.InputRequests[key] = inputRequest{next.method, next.params}
		select {
		case next = <-p.questions: // addForwarded adds none meanwhile
		default:
			return &transport.Message{ID: id, Result: strictjson.MustMarshal(&result)}
		}
	}
}

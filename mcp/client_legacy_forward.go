// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
)

// A pendingCall is a call to a legacy server that was forwarded. A question that the server
// asks about it goes to the sender of the request as an [*InputRequired]. The request that
// brings the answer names the call by its handle.
type pendingCall struct {
	id        ID // of the call to the server
	handle    string
	principal *Principal
	cancel    context.CancelCauseFunc
	done      chan struct{} // closed when outcome is set
	outcome   outcome
	questions chan forwardedQuestion
	expiry    *time.Timer

	mu      sync.Mutex
	req     *Request      // the latest request for the call
	waiting int           // requests that wait for the call; a proxy may repeat a request
	asked   map[string]ID // the server's questions that were passed on, by key
}

type outcome struct {
	res Result
	err error
}

type forwardedQuestion struct {
	id ID
	q  InputRequest
}

// Bounds on pending calls: how long they wait for the sender, and their number.
const (
	pendingTime = 10 * time.Minute
	maxPending  = 1024
)

// sendForwarded sends a request that was received or, if it contains the handle of a pending
// call, passes its answers to that call. It returns the result of the call or its next
// questions. When the request is cancelled, so is the call if no other request waits for it.
func (e *legacyClient) sendForwarded(ctx context.Context, req *Request) (Result, error) {
	p, err := e.pendingCall(ctx, req)
	if err != nil {
		return nil, err
	}
	p.countWaiting(1)
	select {
	case <-p.done:
		e.forget(p)
		return p.outcome.res, p.outcome.err
	case q := <-p.questions:
		e.conn.waitForListener(p.id)
		p.countWaiting(-1)
		return p.inputRequired(q), nil
	case <-ctx.Done():
		if p.countWaiting(-1) == 0 {
			p.cancel(context.Cause(ctx))
			e.forget(p)
		}
		return nil, context.Cause(ctx)
	}
}

// countWaiting adds n to the number of waiting requests and returns it.
func (p *pendingCall) countWaiting(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting += n
	return p.waiting
}

// pendingCall returns the call that a request continues, or starts a new one.
func (e *legacyClient) pendingCall(ctx context.Context, req *Request) (*pendingCall, error) {
	state := req.params.requestState()
	if state == nil {
		return e.startPending(ctx, req)
	}
	p := e.findPending(string(jsonscan.Unquote(state)), req.Principal)
	if p == nil {
		return nil, Errorf(CodeInvalidParams, "params.requestState names no call that waits here, or not any more")
	}
	p.expiry.Reset(pendingTime)
	return p, e.answerPending(ctx, p, req)
}

// answerPending passes answers on to the server. The server waits for a response to each of
// its questions, so a missing answer is sent as a refusal.
func (e *legacyClient) answerPending(ctx context.Context, p *pendingCall, req *Request) error {
	answers := map[string]json.RawMessage{}
	if raw := req.params.inputResponses(); raw != nil {
		if err := unmarshal(raw, &answers); err != nil {
			return Errorf(CodeInvalidParams, "params.inputResponses must be an object of answers")
		}
	}
	p.mu.Lock()
	asked := p.asked
	p.req, p.asked = req, map[string]ID{}
	p.mu.Unlock()
	for key, id := range asked {
		if answer, ok := answers[key]; ok {
			e.reply(ctx, id, answer, nil)
		} else {
			e.reply(ctx, id, nil, &Error{Code: revision.CodeUserRejectedRequest, Message: "the question was not answered"})
		}
	}
	return nil
}

// startPending makes a call in a goroutine. The call outlives the request that starts it.
func (e *legacyClient) startPending(ctx context.Context, req *Request) (*pendingCall, error) {
	id := e.conn.nextID()
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &pendingCall{
		id: id, handle: rand.Text(), principal: req.Principal, cancel: cancel, req: req, asked: map[string]ID{},
		done: make(chan struct{}), questions: make(chan forwardedQuestion, e.conn.client.opts.MaxQuestions),
	}
	p.expiry = time.AfterFunc(pendingTime, func() {
		cancel(&TimeoutError{req.Method, pendingTime})
		e.forget(p)
	})
	detached = p.withNotifications(detached, req)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pending) >= maxPending {
		p.expiry.Stop()
		cancel(nil)
		return nil, tooMany(maxPending)
	}
	e.pending[id] = p
	go func() {
		res, err := e.sendInSession(detached, req, id)
		p.outcome = outcome{res, err}
		close(p.done)
	}()
	return p, nil
}

// withNotifications returns a context for the call. If the first request wants progress or
// log messages, they go to the latest request.
func (p *pendingCall) withNotifications(ctx context.Context, req *Request) context.Context {
	if !req.ProgressToken().IsZero() {
		ctx = WithProgress(ctx, func(progress *ProgressParams) { p.latest().notifyProgress(context.Background(), progress) })
	}
	if req.LogLevel() != "" {
		ctx = context.WithValue(ctx, logKey{}, func(message *LoggingMessageParams) { p.latest().notifyLog(context.Background(), message) })
	}
	return ctx
}

// latest returns the latest request for the call.
func (p *pendingCall) latest() *Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.req
}

// findPending returns the pending call of a principal by its handle, or nil.
func (e *legacyClient) findPending(handle string, principal *Principal) *pendingCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.pending {
		if p.handle == handle && p.principal.Is(principal) {
			return p
		}
	}
	return nil
}

// forget removes a pending call.
func (e *legacyClient) forget(p *pendingCall) {
	p.expiry.Stop()
	p.cancel(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pending, p.id)
}

// passOn passes a question on to the sender of the call that it belongs to. If the stream
// does not name the call, the question is passed on only if it can belong to one call alone,
// and refused otherwise. It returns false if the question is not about a forwarded call.
func (e *legacyClient) passOn(id ID, q InputRequest, about ID) bool {
	if !e.conn.client.opts.Forward || !isQuestion(q.Method) {
		return false
	}
	call, err := e.conn.inFlight.attribute(about)
	if err == nil {
		e.mu.Lock()
		p := e.pending[call]
		e.mu.Unlock()
		if p == nil {
			return false
		}
		err = p.addQuestion(id, q)
	}
	if err != nil {
		e.conn.client.opts.Logger.Warn("mcp: a question of the server was not passed on", "method", q.Method, "error", err)
		e.refuseQuestion(id, q.Method, err)
	}
	return true
}

// isQuestion reports whether a method is a question of a server to its client.
func isQuestion(method string) bool {
	return method == MethodElicit || method == MethodCreateMessage || method == MethodListRoots
}

// addQuestion adds a question for the sender, unless the sender did not declare the
// capability or has too many.
func (p *pendingCall) addQuestion(id ID, q InputRequest) error {
	if err := checkCapability(p.latest(), q); err != nil {
		return err
	}
	select {
	case p.questions <- forwardedQuestion{id, q}:
		return nil
	default:
		return tooMany(cap(p.questions))
	}
}

// refuseQuestion responds to a question with the reason why it was not passed on.
func (e *legacyClient) refuseQuestion(id ID, method string, reason error) {
	ctx, own := e.addQuestion(id)
	if own == nil {
		e.conn.client.opts.Logger.Warn("mcp: a question of the server was dropped: it asks too much", "method", method)
		return
	}
	go func() {
		defer e.removeQuestion(id, own)
		e.reply(ctx, id, nil, Errorf(CodeInvalidRequest, "the question cannot be passed on: %w", reason))
	}()
}

// inputRequired returns the result that passes on a question and those that follow it.
func (p *pendingCall) inputRequired(first forwardedQuestion) *InputRequired {
	asked := &InputRequired{
		ResultBase:    ResultBase{ResultType: ResultInputRequired},
		InputRequests: map[string]InputRequest{},
		RequestState:  &p.handle,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for next := first; ; {
		key := "q" + next.id.String()
		p.asked[key] = next.id
		q := next.q
		if q.Params == nil {
			q.Params = json.RawMessage("{}")
		}
		asked.InputRequests[key] = q
		select {
		case next = <-p.questions:
		default:
			return asked
		}
	}
}

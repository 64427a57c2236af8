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
)

// pendingCall is a call at a server of the legacy era that waits for an answer
// which somebody beyond this process has to give: the question went there as an
// [*InputRequired], and what comes back names the call by its handle.
type pendingCall struct {
	id        ID // of the call at the server
	handle    string
	principal *Principal
	cancel    context.CancelCauseFunc
	outcome   chan outcome // of one place
	questions chan travellingQuestion
	expiry    *time.Timer

	mu    sync.Mutex
	req   *Request      // the one that waits now
	asked map[string]ID // the server's questions that were passed on, by key
}

type outcome struct {
	res Result
	err error
}

type travellingQuestion struct {
	id ID
	q  InputRequest
}

// Bounds on calls that wait for somebody far away.
const (
	pendingTime  = 10 * time.Minute
	maxPending   = 1024
	maxQuestions = 16
)

// sendForwarded sends a request that was received, or, if it carries the handle of
// a call, takes that one its answers. It returns at the first of an answer and a
// question. A call that is cancelled while somebody waits for it is over.
func (e *legacyClient) sendForwarded(ctx context.Context, req *Request) (Result, error) {
	p, err := e.pendingOf(ctx, req)
	if err != nil {
		return nil, err
	}
	select {
	case o := <-p.outcome:
		e.forget(p)
		return o.res, o.err
	case q := <-p.questions:
		e.conn.settleProgress(p.id)
		return p.ask(q), nil
	case <-ctx.Done():
		p.cancel(context.Cause(ctx))
		e.forget(p)
		return nil, context.Cause(ctx)
	}
}

func (e *legacyClient) pendingOf(ctx context.Context, req *Request) (*pendingCall, error) {
	state := req.params.requestState()
	if state == nil {
		return e.start(ctx, req)
	}
	p := e.find(string(jsonscan.Unquote(state)), req.Principal)
	if p == nil {
		return nil, Errorf(CodeInvalidParams, "params.requestState names no call that waits here, or not any more")
	}
	p.expiry.Reset(pendingTime)
	return p, e.answerPending(ctx, p, req)
}

// answerPending passes the answers on to the server. An answer that is missing is
// taken for a refusal, since the server still waits for one.
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
			e.reply(ctx, id, nil, &Error{Code: CodeLegacyUserRejectedRequest, Message: "the question was not answered"})
		}
	}
	return nil
}

// start makes the call, in the background: it outlives the request that began it.
func (e *legacyClient) start(ctx context.Context, req *Request) (*pendingCall, error) {
	id := e.conn.nextID()
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &pendingCall{
		id: id, handle: rand.Text(), principal: req.Principal, cancel: cancel, req: req, asked: map[string]ID{},
		outcome: make(chan outcome, 1), questions: make(chan travellingQuestion, maxQuestions),
	}
	p.expiry = time.AfterFunc(pendingTime, func() {
		cancel(&TimeoutError{req.Method, pendingTime})
		e.forget(p)
	})
	if !req.ProgressToken().IsZero() {
		detached = WithProgress(detached, p.progressed)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pending) >= maxPending {
		p.expiry.Stop()
		cancel(nil)
		return nil, tooMany(maxPending)
	}
	e.pending[id] = p
	go func() {
		res, err := e.sendSafely(detached, req, id)
		p.outcome <- outcome{res, err}
	}()
	return p, nil
}

// progressed tells whoever waits now.
func (p *pendingCall) progressed(progress *ProgressParams) {
	p.mu.Lock()
	req := p.req
	p.mu.Unlock()
	forwarded := *progress
	forwarded.ProgressToken = req.ProgressToken()
	_ = req.Notify(context.Background(), NotificationProgress, &forwarded) // its sender may not listen
}

func (e *legacyClient) find(handle string, principal *Principal) *pendingCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.pending {
		if p.handle == handle && p.principal.Is(principal) {
			return p
		}
	}
	return nil
}

func (e *legacyClient) forget(p *pendingCall) {
	p.expiry.Stop()
	p.cancel(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pending, p.id)
}

// travels hands a question to the call that it belongs to: the one on whose stream
// it came, or, where streams do not tell, the only one that waits.
func (e *legacyClient) travels(id ID, q InputRequest, about ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.pending[about]
	if p == nil && about.IsZero() && len(e.pending) == 1 {
		for _, only := range e.pending {
			p = only
		}
	}
	if p == nil {
		return false
	}
	select {
	case p.questions <- travellingQuestion{id, q}:
		return true
	default:
		return false
	}
}

// ask makes a result of a question and of those that came with it.
func (p *pendingCall) ask(first travellingQuestion) *InputRequired {
	asked := &InputRequired{
		ResultBase:    ResultBase{ResultType: ResultInputRequired},
		InputRequests: map[string]InputRequest{},
		RequestState:  &p.handle,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for next := first; ; {
		key := "q" + next.id.token
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

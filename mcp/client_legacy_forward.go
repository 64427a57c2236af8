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
	done      chan struct{} // closed when outcome is set
	outcome   outcome
	questions chan travellingQuestion
	expiry    *time.Timer

	mu      sync.Mutex
	req     *Request      // the one that waits now
	waiting int           // how many requests do; a proxy may repeat one
	asked   map[string]ID // the server's questions that were passed on, by key
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
	pendingTime = 10 * time.Minute
	maxPending  = 1024
)

// sendForwarded sends a request that was received, or, if it carries the handle of
// a call, takes that one its answers. It returns at the first of an answer and a
// question. A call that is cancelled is over when nobody waits for it any more.
func (e *legacyClient) sendForwarded(ctx context.Context, req *Request) (Result, error) {
	p, err := e.pendingOf(ctx, req)
	if err != nil {
		return nil, err
	}
	p.await(1)
	select {
	case <-p.done:
		e.forget(p)
		return p.outcome.res, p.outcome.err
	case q := <-p.questions:
		e.conn.waitForListener(p.id)
		p.await(-1)
		return p.ask(q), nil
	case <-ctx.Done():
		if p.await(-1) == 0 {
			p.cancel(context.Cause(ctx))
			e.forget(p)
		}
		return nil, context.Cause(ctx)
	}
}

// await counts a request that waits, or one that does not any more, and returns how many
// do now.
func (p *pendingCall) await(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting += n
	return p.waiting
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
		done: make(chan struct{}), questions: make(chan travellingQuestion, e.conn.client.opts.MaxQuestions),
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
		res, err := e.sendSafely(detached, req, id)
		p.outcome = outcome{res, err}
		close(p.done)
	}()
	return p, nil
}

// withNotifications returns a context in which progress and messages, if the first
// request wants them, go to the request that waits now.
func (p *pendingCall) withNotifications(ctx context.Context, req *Request) context.Context {
	if !req.ProgressToken().IsZero() {
		ctx = WithProgress(ctx, func(progress *ProgressParams) { p.latest().notifyProgress(context.Background(), progress) })
	}
	if req.LogLevel() != "" {
		ctx = context.WithValue(ctx, logKey{}, func(message *LogParams) { p.latest().notifyLog(context.Background(), message) })
	}
	return ctx
}

// latest returns the request that waits now.
func (p *pendingCall) latest() *Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.req
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

// travels hands a question to the caller whose call it belongs to. Where streams do not
// tell, it is a caller's only if it can be nobody else's; then the server is told why it
// is not passed on. It reports whether the question is dealt with.
func (e *legacyClient) travels(id ID, q InputRequest, about ID) bool {
	if !e.conn.client.opts.Forward || !isQuestion(q.Method) {
		return false
	}
	call, err := e.conn.inFlight.attribute(about)
	if err == nil {
		e.mu.Lock()
		p := e.pending[call]
		e.mu.Unlock()
		if p == nil {
			return false // nobody who could be asked
		}
		err = p.take(id, q)
	}
	if err != nil {
		e.conn.client.opts.Logger.Warn("mcp: a question of the server was not passed on", "method", q.Method, "error", err)
		e.refuseQuestion(id, q.Method, err)
	}
	return true
}

// isQuestion reports whether a client can be asked with the method.
func isQuestion(method string) bool {
	return method == MethodElicit || method == MethodCreateMessage || method == MethodListRoots
}

// take enters a question for the caller, unless the caller cannot be asked it.
func (p *pendingCall) take(id ID, q InputRequest) error {
	if err := checkCapability(p.latest(), q); err != nil {
		return err
	}
	select {
	case p.questions <- travellingQuestion{id, q}:
		return nil
	default:
		return tooMany(cap(p.questions))
	}
}

// refuseQuestion answers a question with the reason for which it was not passed on.
func (e *legacyClient) refuseQuestion(id ID, method string, reason error) {
	ctx, own := e.beginAnswer(id)
	if own == nil {
		e.conn.client.opts.Logger.Warn("mcp: a question of the server was dropped: it asks too much", "method", method)
		return
	}
	go func() {
		defer e.endAnswer(id, own)
		e.reply(ctx, id, nil, Errorf(CodeInvalidRequest, "the question cannot be passed on: %w", reason))
	}()
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

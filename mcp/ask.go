// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/go-psi/psi/internal/jsonscan"
)

// Errors that a question ends with.
var (
	// ErrDeclined is returned if the user declined to answer.
	ErrDeclined = errors.New("mcp: the user declined to answer")
	// ErrCancelled is returned if the user closed the question without a choice.
	ErrCancelled = errors.New("mcp: the user cancelled the question")
)

// A Question is something to ask the client, made by [Form], [Link], [Sampling]
// or [RootsQuestion] and asked with [Ask].
type Question interface {
	// questionKey names the question within the handler's call.
	questionKey() string
	// inputRequest is what goes over the wire.
	inputRequest() (InputRequest, error)
	// accept takes the answer.
	accept(answer json.RawMessage) error
}

// Ask asks several questions at once and takes the answers into the places that
// the questions name. Keys tell the questions of one call apart; they must be
// the same every time the handler runs.
//
// As long as an answer is missing, Ask returns an error that the handler must
// pass on, possibly wrapped: the client is then asked, and the handler runs again
// from its top, until it gets by without asking. What must not happen twice
// belongs after the last question or into [Once].
//
// Ask fails at once, with CodeMissingCapability, if the client did not declare
// that it can be asked so. It works in the handlers of tools, prompts and
// resources that are registered on a [Mux], in both eras.
func Ask(ctx context.Context, questions ...Question) error {
	a, err := askingFrom(ctx)
	if err != nil {
		return err
	}
	a.call.mu.Lock()
	defer a.call.mu.Unlock()
	requests := make([]InputRequest, len(questions))
	for i, q := range questions {
		if requests[i], err = a.check(q); err != nil {
			return err
		}
	}
	waiting := false
	var refused error
	for i, q := range questions {
		answer, ok := a.answers[q.questionKey()]
		if !ok {
			a.pending[q.questionKey()] = requests[i]
			waiting = true
			continue
		}
		if err := q.accept(answer); err != nil && refused == nil {
			refused = err
		}
	}
	if waiting && refused == nil {
		return &pendingError{a}
	}
	return refused
}

// Once returns what fn returned when it was first called under key by this
// call's handler, in whichever round that was. The value travels with the
// request's state: it must encode as JSON and be small. Errors are not kept.
func Once[T any](ctx context.Context, key string, fn func() (T, error)) (T, error) {
	var value T
	a, err := askingFrom(ctx)
	if err != nil {
		return value, err
	}
	if raw, ok := a.remembered(key); ok {
		return value, unmarshal(raw, &value)
	}
	if value, err = fn(); err != nil {
		return value, err
	}
	raw, err := marshal(value)
	if err != nil {
		return value, err
	}
	a.remember(key, raw)
	return value, nil
}

// asking is the state of a handler that asks: made when it first does.
type asking struct {
	req     *Request
	call    *call
	sealer  *sealer
	answers map[string]json.RawMessage
	once    map[string]json.RawMessage
	pending map[string]InputRequest
}

// pendingError unwinds a handler that waits for answers. It becomes an
// *InputRequired before any middleware sees it.
type pendingError struct{ asking *asking }

func (*pendingError) Error() string { return "mcp: waiting for the client to answer" }

var errCannotAsk = errors.New("mcp: questions can be asked only in the handlers of tools, prompts and resources of a Mux")

func askingFrom(ctx context.Context) (*asking, error) {
	req := RequestFrom(ctx)
	if req == nil {
		return nil, errCannotAsk
	}
	c := req.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealer == nil {
		return nil, errCannotAsk
	}
	if c.asked == nil {
		a, err := newAsking(req)
		if err != nil {
			return nil, err
		}
		c.asked = a
	}
	return c.asked, nil
}

// newAsking joins the answers of earlier rounds, which the state holds, with
// those of the latest. An answer that was given cannot be changed later.
func newAsking(req *Request) (*asking, error) {
	a := &asking{
		req: req, call: req.call, sealer: req.call.sealer,
		answers: map[string]json.RawMessage{},
		once:    map[string]json.RawMessage{},
		pending: map[string]InputRequest{},
	}
	if raw := req.params.inputResponses(); raw != nil {
		if err := unmarshal(raw, &a.answers); err != nil {
			return nil, Errorf(CodeInvalidParams, "params.inputResponses must be an object of answers")
		}
	}
	if raw := req.params.requestState(); raw != nil {
		state, err := a.sealer.open(req, string(jsonscan.Unquote(raw)))
		if err != nil {
			return nil, err
		}
		maps.Copy(a.answers, state.Answers)
		maps.Copy(a.once, state.Once)
	}
	return a, nil
}

func (a *asking) check(q Question) (InputRequest, error) {
	r, err := q.inputRequest()
	if err != nil {
		return r, err
	}
	return r, checkCapability(a.req, r)
}

func (a *asking) remembered(key string) (json.RawMessage, bool) {
	a.call.mu.Lock()
	defer a.call.mu.Unlock()
	raw, ok := a.once[key]
	return raw, ok
}

func (a *asking) remember(key string, raw json.RawMessage) {
	a.call.mu.Lock()
	defer a.call.mu.Unlock()
	a.once[key] = raw
}

// inputRequired is what a client gets that has to answer: the questions, and all
// that is known so far, sealed.
func (a *asking) inputRequired() *InputRequired {
	a.call.mu.Lock()
	defer a.call.mu.Unlock()
	state := a.sealer.seal(a.req, &replayState{Answers: a.answers, Once: a.once})
	return &InputRequired{
		ResultBase:    ResultBase{ResultType: ResultInputRequired},
		InputRequests: a.pending,
		RequestState:  &state,
	}
}

// asker is the innermost wrapper of every tool, prompt and resource: it lets the
// handler ask, and makes a result of its unwinding.
type asker struct {
	Handler
	sealer *sealer
}

func (h asker) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	req.call.mu.Lock()
	req.call.sealer, req.call.asked = h.sealer, nil
	req.call.mu.Unlock()
	res, err := h.Handler.ServeMCP(contextWithRequest(ctx, req), req) // middleware may have changed it
	if err != nil {
		if pending, ok := errors.AsType[*pendingError](err); ok {
			return pending.asking.inputRequired(), nil
		}
		return res, err
	}
	if asked, ok := res.(*InputRequired); ok {
		return checkInputRequired(req, asked)
	}
	return res, nil
}

// checkInputRequired holds a handler that writes its questions itself to the
// rules: at least one of questions and state, nothing the client cannot answer.
func checkInputRequired(req *Request, r *InputRequired) (Result, error) {
	if len(r.InputRequests) == 0 && r.RequestState == nil {
		return nil, Errorf(CodeInternalError, "a handler asked for input without a question or a state")
	}
	for _, q := range r.InputRequests {
		if err := checkCapability(req, q); err != nil {
			return nil, err
		}
	}
	asked := *r
	asked.ResultType = ResultInputRequired
	return &asked, nil
}

// checkCapability reports the capability that the client would have had to
// declare to be asked r.
func checkCapability(req *Request, r InputRequest) error {
	caps := req.ClientCapabilities()
	var missing *ClientCapabilities
	switch r.Method {
	case MethodElicit:
		missing = missingForElicit(caps, r.Params)
	case MethodCreateMessage:
		missing = missingForSampling(caps, r.Params)
	case MethodListRoots:
		if caps.Roots == nil {
			missing = &ClientCapabilities{Roots: &RootsCapability{}}
		}
	default:
		return Errorf(CodeInternalError, "a client cannot be asked %q", r.Method)
	}
	if missing != nil {
		return MissingCapability(missing)
	}
	return nil
}

func missingForElicit(caps *ClientCapabilities, params json.RawMessage) *ClientCapabilities {
	var p struct {
		Mode string `json:"mode"`
	}
	_ = unmarshal(params, &p)
	switch {
	case p.Mode == "url" && !caps.Elicitation.AllowsURL():
		return &ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}}
	case p.Mode != "url" && !caps.Elicitation.AllowsForm():
		return &ClientCapabilities{Elicitation: &ElicitationCapability{Form: &struct{}{}}}
	}
	return nil
}

func missingForSampling(caps *ClientCapabilities, params json.RawMessage) *ClientCapabilities {
	var p struct {
		Tools          json.RawMessage `json:"tools"`
		ToolChoice     json.RawMessage `json:"toolChoice"`
		IncludeContext string          `json:"includeContext"`
	}
	_ = unmarshal(params, &p)
	needTools := p.Tools != nil || p.ToolChoice != nil
	needContext := p.IncludeContext != "" && p.IncludeContext != "none"
	if s := caps.Sampling; s != nil && (!needTools || s.Tools != nil) && (!needContext || s.Context != nil) {
		return nil
	}
	need := &SamplingCapability{}
	if needTools {
		need.Tools = &struct{}{}
	}
	if needContext {
		need.Context = &struct{}{}
	}
	return &ClientCapabilities{Sampling: need}
}

// isRetry reports whether the request carries answers or state.
func (r *Request) isRetry() bool {
	return r.params.inputResponses() != nil || r.params.requestState() != nil
}

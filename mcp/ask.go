// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
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

// Ask asks several questions at once and stores the answers where the questions say.
// A key identifies a question within the handler's call; it must be the same every time
// the handler runs. Two different questions under one key are an error.
//
// Until every question has been answered, Ask returns an error that the handler must
// return, possibly wrapped: the client is then asked, and the handler runs again from
// its top, until it gets by without asking. An answer belongs to the question as it was
// asked: if the handler asks another one under its key, the client is asked again. What
// must not happen twice belongs after the last question or into [Once]. A client can
// still send its last answers again, and the handler runs again, until
// [MuxOptions.StateTTL] has passed; [MuxOptions.StateStore] prevents that.
//
// Ask fails at once, with CodeMissingCapability, if the client did not declare
// that it can be asked so. It works in the handlers of tools, prompts and
// resources that are registered on a [Mux], in both eras.
func Ask(ctx context.Context, questions ...Question) error {
	a, err := askingFrom(ctx)
	if err != nil {
		return err
	}
	requests := make([]InputRequest, len(questions))
	for i, q := range questions {
		if requests[i], err = a.check(q); err != nil {
			return err
		}
	}
	answers, err := a.ask(ctx, questions, requests)
	if err != nil {
		return err
	}
	waiting := false
	var refused error
	for i, q := range questions {
		if answers[i] == nil {
			waiting = true
		} else if err := q.accept(answers[i]); err != nil && refused == nil {
			refused = err
		}
	}
	if waiting && refused == nil {
		return &pendingError{a}
	}
	return refused
}

// Once returns what fn returned when it was first called under key by this
// call's handler, in whichever round that was. Concurrent calls under one key run fn
// once. The value travels with the request's state: it must encode as JSON, and all
// values and answers together must fit into [MuxOptions.MaxState]. Errors are not kept.
func Once[T any](ctx context.Context, key string, fn func() (T, error)) (T, error) {
	var value T
	a, err := askingFrom(ctx)
	if err != nil {
		return value, err
	}
	raw, err := a.onceValue(ctx, key, func() (json.RawMessage, error) {
		v, err := fn()
		if err != nil {
			return nil, err
		}
		return marshal(v)
	})
	if err != nil {
		return value, err
	}
	if err := unmarshal(raw, &value); err != nil {
		return value, Errorf(CodeInternalError, "the value that Once keeps under %q does not fit a %T: %w", key, value, err)
	}
	return value, nil
}

// asker is the innermost wrapper of every tool, prompt and resource: it lets the
// handler ask, and makes a result of its unwinding.
type asker struct {
	Handler
	sealer *sealer
}

func (h asker) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	inner := &askingContext{requestContext: requestContext{ctx, req}}
	inner.asking.req, inner.asking.sealer = req, h.sealer
	res, err := h.Handler.ServeMCP(inner, req)
	if err != nil {
		if pending, ok := errors.AsType[*pendingError](err); ok {
			return boundQuestions(pending.asking.inputRequired())
		}
		return res, err
	}
	if asked, ok := res.(*InputRequired); ok {
		return boundQuestions(checkInputRequired(req, asked))
	}
	inner.asking.warnIfUnasked(ctx)
	return res, nil
}

// boundQuestions refuses more questions at once than clients answer, so that a handler
// that asks too much fails in every era and with every client.
func boundQuestions(res Result, err error) (Result, error) {
	if asked, ok := res.(*InputRequired); ok && len(asked.InputRequests) > maxQuestions {
		return nil, Errorf(CodeInternalError, "the handler asks %d questions at once; a client answers up to %d", len(asked.InputRequests), maxQuestions)
	}
	return res, err
}

// askingContext is the context of a handler that can ask. What a handler asks and
// remembers is its own, also if it calls other handlers for the same request.
type askingContext struct {
	requestContext
	asking asking
}

type askingKey struct{}

func (c *askingContext) Value(key any) any {
	if key == (askingKey{}) {
		return &c.asking
	}
	return c.requestContext.Value(key)
}

// unanswered returns the outcome of a call whose question the client could not answer:
// for a tool, a result that tells the model.
func unanswered(ctx context.Context, req *Request, err error) (Result, error) {
	if req.Method == MethodCallTool && ctx.Err() == nil {
		return ErrorResult("the client did not answer a question: " + asError(err).Message), nil
	}
	return nil, err
}

// answered returns r with what a client adds when it repeats a request that asked.
func (r *Request) answered(answers map[string]json.RawMessage, state *string) (*Request, error) {
	raw := []byte{'{'}
	raw = append(appendKey(raw, "inputResponses"), mustMarshal(answers)...)
	if state != nil {
		raw = append(appendKey(raw, "requestState"), mustMarshal(*state)...)
	}
	params := r.Params()
	if params == nil {
		params = json.RawMessage("{}")
	}
	return r.WithParams(json.RawMessage(appendMembersBut(raw, params, []string{"inputResponses", "requestState"})))
}

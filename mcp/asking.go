// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/jsonscan"
)

// asking is what one run of a handler asks and remembers. It is loaded from the
// request's state when the handler first asks.
type asking struct {
	req    *Request
	sealer *sealer

	mu      sync.Mutex
	loaded  bool
	failed  error                      // why it could not be loaded
	answers map[string]sealedAnswer    // of this and earlier rounds
	unbound map[string]json.RawMessage // answers that came without a state, until the handler asks or remembers
	once    map[string]json.RawMessage // what Once keeps
	running map[string]chan struct{}   // keys of Once whose function runs; closed when it has returned
	asked   map[string]askedQuestion   // in this run, answered or not
}

// askedQuestion is a question with its digest.
type askedQuestion struct {
	request  InputRequest
	digest   string
	answered bool
}

// pendingError unwinds a handler that waits for answers. It becomes an
// *InputRequired before any middleware sees it.
type pendingError struct{ asking *asking }

func (*pendingError) Error() string { return "mcp: waiting for the client to answer" }

var errCannotAsk = errors.New("mcp: questions can be asked only in the handlers of tools, prompts and resources of a Mux")

// askingFrom returns what the innermost handler of ctx asks.
func askingFrom(ctx context.Context) (*asking, error) {
	a, ok := ctx.Value(askingKey{}).(*asking)
	if !ok {
		return nil, errCannotAsk
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.loaded {
		a.loaded, a.failed = true, a.loadLocked(ctx)
	}
	return a, a.failed
}

// loadLocked takes the answers of earlier rounds from the state, and those that the
// client was asked for with this state from the request. Other answers are ignored: the
// client cannot have been asked. Without a state, the answers can be to what the handler
// asks first, for which nothing has to be remembered.
func (a *asking) loadLocked(ctx context.Context) error {
	a.answers, a.once = map[string]sealedAnswer{}, map[string]json.RawMessage{}
	a.asked, a.running = map[string]askedQuestion{}, map[string]chan struct{}{}
	var given map[string]json.RawMessage
	if raw := a.req.params.inputResponses(); raw != nil && unmarshal(raw, &given) != nil {
		return Errorf(CodeInvalidParams, "params.inputResponses must be an object of answers")
	}
	token := a.req.params.requestState()
	if token == nil {
		a.unbound = given
		return nil
	}
	state, err := a.sealer.open(ctx, a.req, string(jsonscan.Unquote(token)))
	if err != nil {
		return err
	}
	maps.Copy(a.answers, state.Answers)
	maps.Copy(a.once, state.Once)
	for key, answer := range given {
		if digest, ok := state.Asked[key]; ok {
			a.answers[key] = sealedAnswer{digest, answer}
		}
	}
	return nil
}

func (a *asking) check(q Question) (InputRequest, error) {
	r, err := q.inputRequest()
	if err != nil {
		return r, err
	}
	return r, checkCapability(a.req, r)
}

// ask returns the answers, nil for those that are missing.
func (a *asking) ask(ctx context.Context, questions []Question, requests []InputRequest) ([]json.RawMessage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answers := make([]json.RawMessage, len(questions))
	for i, q := range questions {
		key, digest := q.questionKey(), requests[i].digest()
		before, again := a.asked[key]
		if again && before.digest != digest {
			return nil, Errorf(CodeInternalError, "the handler asks two different questions under the key %q", key)
		}
		if raw, ok := a.unbound[key]; ok {
			a.answers[key] = sealedAnswer{digest, raw}
		}
		answer, ok := a.answers[key]
		if ok && answer.Question != digest {
			ok = false
			a.sealer.logger.WarnContext(ctx, "mcp: a question has changed since it was answered; it is asked again",
				"method", a.req.Method, "name", a.req.Name(), "key", key)
		}
		if ok {
			answers[i] = answer.Answer
		}
		a.asked[key] = askedQuestion{requests[i], digest, ok}
	}
	a.unbound = nil
	return answers, nil
}

// onceValue returns what is kept under key, or what fn makes, which is then kept.
func (a *asking) onceValue(ctx context.Context, key string, fn func() (json.RawMessage, error)) (json.RawMessage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		if raw, ok := a.once[key]; ok {
			return raw, nil
		}
		other := a.running[key]
		if other == nil {
			return a.runOnceLocked(key, fn)
		}
		a.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
		}
		a.mu.Lock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// runOnceLocked gives up the lock while fn runs.
func (a *asking) runOnceLocked(key string, fn func() (json.RawMessage, error)) (raw json.RawMessage, err error) {
	done := make(chan struct{})
	a.running[key], a.unbound = done, nil
	a.mu.Unlock()
	defer func() { // also if fn panics
		a.mu.Lock()
		delete(a.running, key)
		if raw != nil && err == nil {
			a.once[key] = raw
		}
		close(done)
	}()
	return fn()
}

// inputRequired is what a client gets that has to answer: the questions, and all
// that is known so far, sealed.
func (a *asking) inputRequired() (Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := &replayState{Answers: a.answers, Once: a.once, Asked: map[string]string{}}
	requests := map[string]InputRequest{} // a copy, for the handler may leave a goroutine that still asks
	for key, q := range a.asked {
		if !q.answered {
			requests[key], state.Asked[key] = q.request, q.digest
		}
	}
	token, err := a.sealer.seal(a.req, state)
	if err != nil {
		return nil, err
	}
	return &InputRequired{
		ResultBase:    ResultBase{ResultType: ResultInputRequired},
		InputRequests: requests,
		RequestState:  &token,
	}, nil
}

// warnIfUnasked logs the questions that a handler has asked without passing on the
// error: the client never sees them.
func (a *asking) warnIfUnasked(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []string
	for key, q := range a.asked {
		if !q.answered {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	a.sealer.logger.WarnContext(ctx, "mcp: a handler asked and did not return the error of Ask; the client is not asked",
		"method", a.req.Method, "name", a.req.Name(), "keys", keys)
}

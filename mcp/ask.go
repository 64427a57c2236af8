// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/replay"
)

// Errors returned for questions that were not answered. A tool that returns them fails with
// their text, which is for models.
var (
	// ErrDeclined is returned if the user declined to answer.
	ErrDeclined = errors.New("the user declined to answer")
	// ErrCancelled is returned if the user dismissed the question without answering.
	ErrCancelled = errors.New("the user cancelled the question")
)

// A Question is a question for the client, created by [ElicitQuestion],
// [ElicitSchemaQuestion], [ElicitURLQuestion], [SampleQuestion] or [RootsQuestion] and
// asked with [Ask].
type Question interface {
	// questionKey returns the key that identifies the question within a handler call.
	questionKey() string
	// inputRequest returns the request for the client.
	inputRequest() (InputRequest, error)
	// accept stores the answer.
	accept(answer json.RawMessage) error
}

// Ask asks the client several questions at once and stores each answer in the question's
// destination. A key identifies a question within a handler call and must be the same every
// time the handler runs. It must not contain # or /. A key may be used several times, as in a
// loop: each use in a run is a question of its own, numbered in the order of use, so the order
// must be the same every time, too. Goroutines that ask at the same time need different keys.
//
// Until every question has been answered, Ask returns an error that the handler must
// return, possibly wrapped. The client is then asked, and the handler runs again from the
// start, until all its questions are answered. If the handler changes the question under a
// key, the client is asked again. Put side effects that must not be repeated after the last
// question or in [Once]. A client can resend its last answers, which runs the handler
// again, until [MuxOptions.StateTTL] has passed; [MuxOptions.StateStore] prevents that.
//
// Ask returns the cause of ctx if ctx is done, whether or not there are answers. In the
// function of [Once] it returns an error, because that function does not run again. It returns
// an error with CodeMissingCapability if the client did not declare the capability that a
// question needs. It works in tool, prompt and resource handlers registered on a [Mux], in
// both eras.
func Ask(ctx context.Context, questions ...Question) error {
	a, err := askStateFrom(ctx)
	if err != nil {
		return err
	}
	if step := a.stepOf(ctx); step != "" {
		return Errorf(CodeInternalError, "the step %q of %s %q asks a question, but steps are not run again with the answer: ask before Once", step, a.req.Method, a.req.Name())
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

// Once runs a step of a handler: it calls fn and remembers the value, and returns the same
// value whenever the handler runs again. A key identifies a step within a handler call and must
// be the same every time the handler runs. It must not contain # or /. A key may be used
// several times, as in a loop: each use in a run is a step of its own, numbered in the order in
// which they succeed. Goroutines need different keys: using the key of a step that is running
// is an error.
//
// The context of fn is that of the step: the keys of steps inside it are its own, and it cannot
// ask. Errors of fn are not remembered; the next use of the key is the same step. Values must
// encode as JSON. Unless the handler runs as a task, they are part of the encrypted state that
// the client holds, and together with the answers they may have 256 KiB.
//
// If ctx is done, Once returns the cause of ctx and does not call fn, so that no step begins
// after the caller has cancelled the call.
func Once[T any](ctx context.Context, key string, fn func(ctx context.Context) (T, error)) (T, error) {
	var value T
	a, err := askStateFrom(ctx)
	if err != nil {
		return value, err
	}
	if err := checkKey(key); err != nil {
		return value, err
	}
	raw, err := a.onceValue(ctx, a.scoped(ctx, key), func(ctx context.Context) (json.RawMessage, error) {
		v, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return marshalValue(v)
	})
	if err != nil {
		return value, err
	}
	if err := decode(raw, &value); err != nil {
		return value, Errorf(CodeInternalError, "the value that Once keeps under %q for %s %q does not fit a %T: %w", key, a.req.Method, a.req.Name(), value, err)
	}
	return value, nil
}

// serveAsking calls the registered handler with a context that allows questions, and
// converts the error of Ask into a result. The innermost wrapper of an entry does this, not
// the typed adapters, so plain Handlers may ask, and middleware never sees the error that
// unwinds a handler.
func (e *entry) serveAsking(ctx context.Context, req *Request) (Result, error) {
	inner := &askContext{requestContext: requestContext{ctx, req}}
	inner.state.req, inner.state.sealer = req, e.sealer
	res, err := e.registered.ServeMCP(inner, req)
	if err != nil {
		if pending, ok := errors.AsType[*pendingError](err); ok {
			return boundQuestions(pending.state.inputRequired())
		}
		inner.state.warnIfUnasked(ctx) // err may not wrap Ask's error
		return res, err
	}
	if asked, ok := res.(*InputRequired); ok {
		return boundQuestions(checkInputRequired(req, asked))
	}
	inner.state.warnIfUnasked(ctx)
	return res, nil
}

// boundQuestions returns an error if a handler asks more questions at once than clients
// answer, so that the handler fails in every era and with every client.
func boundQuestions(res Result, err error) (Result, error) {
	if asked, ok := res.(*InputRequired); ok && len(asked.InputRequests) > maxQuestions {
		return nil, tooManyQuestions(len(asked.InputRequests))
	}
	return res, err
}

func tooManyQuestions(n int) error {
	return Errorf(CodeInternalError, "the handler asks %d questions at once; a client answers up to %d", n, maxQuestions)
}

// askContext is the context of a handler that can ask questions. Each handler has its
// own questions, even if it calls other handlers for the same request. They are in its
// context, not in the request: otherwise a tool that calls another with the same request
// would lose its Once values, and both would read each other's answers.
type askContext struct {
	requestContext
	state askState
}

type askKey struct{}

func (c *askContext) Value(key any) any {
	if key == (askKey{}) {
		return &c.state
	}
	return c.requestContext.Value(key)
}

// unansweredResult returns the outcome of a request about which the client could not answer a
// question: for a tool call, an error result for the model; otherwise err. A question that is
// the server's mistake is an error in any case.
func unansweredResult(ctx context.Context, req *Request, err error) (Result, error) {
	reason := asError(err).Message
	text := "the client did not answer a question: " + reason
	if errors.Is(err, ErrNotDelivered) {
		if codedError(err) == nil {
			reason = "nothing can be sent to it before the response"
		}
		text = "the client could not be asked a question: " + reason
		err = &Error{Code: CodeInternalError, Message: text, Cause: err}
	}
	if req.Method == MethodCallTool && ctx.Err() == nil {
		return fixedErrorResult(err, text), nil
	}
	return nil, err
}

// withAnswers returns r with the answers and the state added, for the next round of a request
// about which the client was asked.
func (r *Request) withAnswers(answers map[string]json.RawMessage, state *string) (*Request, error) {
	raw := []byte{'{'}
	raw = append(jsonscan.AppendKey(raw, "inputResponses"), mustMarshal(answers)...)
	if state != nil {
		raw = append(jsonscan.AppendKey(raw, "requestState"), mustMarshal(*state)...)
	}
	params := r.Params()
	if params == nil {
		params = json.RawMessage("{}")
	}
	return r.WithParams(json.RawMessage(jsonscan.AppendMembers(raw, params, "inputResponses", "requestState")))
}

// askState holds the questions, the answers and the Once values of one run of a handler. It
// is loaded from the request's state by the first Ask or Once.
type askState struct {
	req    *Request
	sealer *sealer

	run *replay.Run // set by askStateFrom; nil if ctx has none or it belongs to another handler

	mu      sync.Mutex // acquired after the lock of the run
	loaded  bool
	failed  error                      // the error of loading the state
	answers map[string]replay.Answer   // of this and earlier rounds, by key
	unbound map[string]json.RawMessage // answers sent without a state, until the first Ask or Once
	once    map[string]json.RawMessage // the values of Once, by key
	running map[string]bool            // keys of steps in progress, without their numbers
	asked   map[string]askedQuestion   // questions of this run, answered or not, by key
	waiting int                        // number of asked questions that are not answered
	used    struct{ asked, once uses } // uses of keys in this run
}

// An askedQuestion is a question that the handler asked in this run.
type askedQuestion struct {
	request  InputRequest
	digest   string
	answered bool
}

// A pendingError unwinds a handler that waits for answers. It is converted to an
// *InputRequired before any middleware sees it.
type pendingError struct{ state *askState }

func (*pendingError) Error() string { return "waiting for the client to answer" }

var errCannotAsk = errors.New("questions can be asked only in the handlers of tools, prompts and resources of a Mux")

// askStateFrom returns the askState of the innermost handler of ctx, and loads it if
// necessary. It returns the cause of ctx if ctx is done: a handler that asks or remembers in
// a loop must notice that its caller has gone, even if it does not look at ctx itself.
func askStateFrom(ctx context.Context) (*askState, error) {
	a, ok := ctx.Value(askKey{}).(*askState)
	switch {
	case !ok:
		return nil, errCannotAsk
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	run := replay.FromContext(ctx)
	memory, ok := run.Begin(a, func() replay.Memory { return a.snapshot(ctx) })
	if !ok {
		run = nil
	}
	a.mu.Lock()
	a.run = run
	reads := !a.loaded && memory == nil && a.req.params.requestState() != nil
	err := a.loadLocked(ctx, memory)
	a.mu.Unlock()
	if err == nil && reads {
		err = run.Keep(ctx) // the state may be single-use
	}
	return a, err
}

// snapshot returns a copy of the handler's current answers and Once values.
func (a *askState) snapshot(ctx context.Context) replay.Memory {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.loadLocked(ctx, nil) // askStateFrom returns the error to the handler
	return replay.Memory{Answers: maps.Clone(a.answers), Once: maps.Clone(a.once)}
}

// loadLocked loads the answers and Once values on its first call: from memory or, if that
// is nil, from the request's state. a.mu must be held.
func (a *askState) loadLocked(ctx context.Context, memory *replay.Memory) error {
	switch {
	case a.loaded:
		return a.failed
	case memory == nil:
		memory = new(replay.Memory)
		a.failed = a.readState(ctx, memory)
	}
	a.loaded, a.answers, a.once = true, map[string]replay.Answer{}, map[string]json.RawMessage{}
	a.asked, a.running = map[string]askedQuestion{}, map[string]bool{}
	a.used.asked, a.used.once = uses{}, uses{}
	maps.Copy(a.answers, memory.Answers)
	maps.Copy(a.once, memory.Once)
	return a.failed
}

// readState reads the answers of earlier rounds from the state, and the answers to the
// questions asked with that state from the request. Other answers are ignored, because the
// client cannot have been asked for them. Without a state, the answers may be to the
// handler's first questions, before which there was nothing to remember.
func (a *askState) readState(ctx context.Context, memory *replay.Memory) error {
	var given map[string]json.RawMessage
	if raw := a.req.params.inputResponses(); raw != nil && unmarshal(raw, &given) != nil {
		return Errorf(CodeInvalidParams, "params.inputResponses must be an object of answers")
	}
	token := a.req.params.requestState()
	if token == nil {
		a.unbound = given
		return nil
	}
	state, err := a.sealer.open(ctx, a.req, jsonscan.Text(token))
	if err != nil {
		return err
	}
	*memory = replay.Memory{Answers: state.Answers, Once: state.Once}
	for key, answer := range given {
		if digest, ok := state.Asked[key]; ok {
			if memory.Answers == nil {
				memory.Answers = map[string]replay.Answer{}
			}
			memory.Answers[key] = replay.Answer{Question: digest, Answer: answer}
		}
	}
	return nil
}

func (a *askState) check(q Question) (InputRequest, error) {
	r, err := q.inputRequest()
	if err == nil {
		err = checkKey(q.questionKey())
	}
	if err != nil {
		return r, err
	}
	return r, checkCapability(a.req, r)
}

// ask returns the answers to the questions. Missing answers are nil.
func (a *askState) ask(ctx context.Context, questions []Question, requests []InputRequest) ([]json.RawMessage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answers := make([]json.RawMessage, len(questions))
	keys := map[string]bool{} // of this call
	for i, q := range questions {
		digest := requests[i].digest()
		key, isNew := a.keyOfLocked(q.questionKey(), digest, keys)
		keys[key] = true
		if raw, ok := a.unbound[key]; ok {
			a.answers[key] = replay.Answer{Question: digest, Answer: raw}
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
		if isNew && !ok {
			a.waiting++
		}
	}
	a.unbound = nil
	if a.waiting > maxQuestions {
		return nil, tooManyQuestions(a.waiting)
	}
	return answers, nil
}

// keyOfLocked returns the numbered key of a question, and whether it is a new use. A handler
// that asks the question that it waits for once more, although it was told to return, does not
// use the key again. keys are those of the same Ask, in which each question is a use.
func (a *askState) keyOfLocked(key, digest string, keys map[string]bool) (_ string, isNew bool) {
	last := numbered(key, a.used.asked[key])
	if q, ok := a.asked[last]; ok && !q.answered && q.digest == digest && !keys[last] {
		return last, false
	}
	next := a.used.asked.next(key)
	a.used.asked[key]++
	return next, true
}

// onceValue returns the value of the next use of a key. If there is none, it calls fn and stores
// the result.
func (a *askState) onceValue(ctx context.Context, key string, fn func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[key] {
		return nil, Errorf(CodeInternalError, "the step %q of %s %q is running already: goroutines need steps with different keys", key, a.req.Method, a.req.Name())
	}
	next := a.used.once.next(key)
	raw, ok := a.once[next]
	if !ok {
		var err error
		if raw, err = a.runOnceLocked(ctx, key, next, fn); err != nil {
			return nil, err
		}
	}
	a.used.once[key]++
	return raw, nil
}

// runOnceLocked releases a.mu, calls fn and stores its value under next, the numbered key. It
// returns with a.mu held.
func (a *askState) runOnceLocked(ctx context.Context, key, next string, fn func(context.Context) (json.RawMessage, error)) (raw json.RawMessage, err error) {
	run := a.run
	a.running[key], a.unbound = true, nil
	maps.DeleteFunc(a.used.once, func(used string, _ int) bool { return strings.HasPrefix(used, next+"/") }) // of a failed attempt
	a.mu.Unlock()
	defer func() { // even if fn panics
		a.mu.Lock()
		delete(a.running, key)
	}()
	if raw, err = fn(&stepContext{ctx, a, next}); err != nil {
		return nil, err
	}
	return raw, run.Store(ctx, next, raw, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.once[next] = raw
	})
}

// inputRequired returns the result that asks the client the unanswered questions. Unless
// the run is kept, it carries the answers and Once values so far as encrypted state.
func (a *askState) inputRequired() (Result, error) {
	run, requests, digests := a.unanswered()
	result := &InputRequired{ResultBase: ResultBase{ResultType: ResultInputRequired}, InputRequests: requests}
	if run.Suspend(digests) {
		return result, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	token, err := a.sealer.seal(a.req, &replayState{Answers: a.answers, Once: a.once, Asked: digests})
	if err != nil {
		return nil, err
	}
	result.RequestState = &token
	return result, nil
}

// unanswered returns the run, the unanswered questions and their digests. The maps are copies,
// because a goroutine started by the handler may still be asking.
func (a *askState) unanswered() (run *replay.Run, requests map[string]InputRequest, digests map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests, digests = map[string]InputRequest{}, map[string]string{}
	for key, q := range a.asked {
		if !q.answered {
			requests[key], digests[key] = q.request, q.digest
		}
	}
	return a.run, requests, digests
}

// warnIfUnasked logs a warning if the handler asked questions but did not return the error
// of Ask, because the client is then never asked. This is a common mistake of beginners, and
// nothing else shows that the user was not asked.
func (a *askState) warnIfUnasked(ctx context.Context) {
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

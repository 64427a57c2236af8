// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp/mcptrace"
)

// Bounds on questions about one request, for clients and servers of both eras.
const (
	maxRounds    = 32 // how often a server asks
	maxQuestions = 16 // how many questions it asks at once
	maxAsking    = 4  // how many questions are put to the user or the model at the same time
)

// sendAndAnswer sends a request. As often as the server asks questions, it calls the
// client's functions and sends the request again with the answers. If there is no function
// for a question, it returns the questions to the sender of the request.
func (c *Conn) sendAndAnswer(ctx context.Context, req *Request) (Result, error) {
	if req.Method == MethodListen {
		return c.listen(ctx, req)
	}
	ctx = withIncreasingProgress(ctx)
	questions := 0
	for round := range c.client.opts.MaxRounds {
		if round > 0 {
			trace(traceOf(ctx).Round, mcptrace.RoundInfo{Method: req.Method, Name: req.Name(), Round: round + 1, Questions: questions})
		}
		res, err := c.send(ctx, req)
		asked, ok := res.(*InputRequired)
		if err != nil || !ok {
			if r, ok := res.(cacheable); ok && round > 0 {
				*r.hints() = Cacheable{} // it depends on answers, and must not be kept
			}
			return res, err
		}
		if err := c.checkAsked(req, asked); err != nil {
			return nil, err
		}
		if !c.answersAll(asked) {
			return asked, nil
		}
		resume := callclock.Pause(ctx)
		answers, err := c.answerAll(ctx, asked)
		resume()
		if err != nil {
			return c.unanswered(ctx, req, err)
		}
		if req, err = req.answered(answers, asked.RequestState); err != nil {
			return nil, err
		}
		questions = len(answers)
	}
	return nil, Errorf(CodeInternalError, "the server asked in %d rounds without coming to an end", c.client.opts.MaxRounds)
}

// checkAsked checks that a server asks neither too many questions at once nor, if the
// request was received, questions that its sender did not declare.
func (c *Conn) checkAsked(req *Request, asked *InputRequired) error {
	if n, limit := len(asked.InputRequests), c.client.opts.MaxQuestions; n > limit {
		return Errorf(CodeInternalError, "the server asked %d questions at once; ClientOptions.MaxQuestions is %d", n, limit)
	}
	if req.peer.caps == nil || !c.client.opts.Forward || c.answersAll(asked) {
		return nil
	}
	for _, key := range sortedKeys(asked.InputRequests) {
		if err := checkCapability(req, asked.InputRequests[key]); err != nil {
			return err
		}
	}
	return nil
}

// answersAll reports whether there is a function for every question.
func (c *Conn) answersAll(asked *InputRequired) bool {
	for _, q := range asked.InputRequests {
		if !c.client.answers(q) {
			return false
		}
	}
	return true
}

// answerAll answers the questions, at most maxAsking at the same time. If a question cannot
// be answered, the call fails and no further question is asked: the server cannot be told
// (client/sampling).
func (c *Conn) answerAll(ctx context.Context, asked *InputRequired) (map[string]json.RawMessage, error) {
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		answers = map[string]json.RawMessage{}
		failed  error
		slots   = make(chan struct{}, maxAsking)
	)
	for _, key := range sortedKeys(asked.InputRequests) {
		slots <- struct{}{}
		mu.Lock()
		isFailed := failed != nil
		mu.Unlock()
		if isFailed {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			answer, err := c.answer(ctx, asked.InputRequests[key])
			mu.Lock()
			defer mu.Unlock()
			answers[key] = answer
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	wg.Wait()
	return answers, failed
}

// unanswered returns the outcome of a call whose question the client could not answer. It
// is the same as in the legacy era, where the server learns of it and returns a failed tool
// result. An invalid question is an error.
func (c *Conn) unanswered(ctx context.Context, req *Request, err error) (Result, error) {
	switch {
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case hasEnded(c):
		return nil, c.wire.Err()
	}
	if _, bad := errors.AsType[badQuestionError](err); bad {
		return nil, err
	}
	return unanswered(ctx, req, err)
}

// answers reports whether the client has a function for a question.
func (c *Client) answers(q InputRequest) bool {
	switch q.Method {
	case MethodElicit:
		if isURLMode(q.Params) {
			return c.opts.ElicitURL != nil
		}
		return c.opts.Elicit != nil
	case MethodCreateMessage:
		return c.opts.Sample != nil
	case MethodListRoots:
		return c.opts.Roots != nil
	}
	return false
}

func isURLMode(params json.RawMessage) bool {
	var p struct {
		Mode string `json:"mode"`
	}
	return unmarshal(params, &p) == nil && p.Mode == "url"
}

// answer answers a question through ClientOptions.AnswerMiddleware.
func (c *Conn) answer(ctx context.Context, q InputRequest) (answer json.RawMessage, err error) {
	ctx, t := inheritTrace(ctx, c.trace)
	if t != nil {
		start := time.Now()
		trace(t.Question, mcptrace.QuestionInfo{Method: q.Method, Params: q.Params})
		defer func() {
			trace(t.Answered, mcptrace.QuestionInfo{Method: q.Method, Params: q.Params, Answer: answer, Err: err, Duration: time.Since(start)})
		}()
	}
	req, err := NewRequest(q.Method, q.Params)
	if err != nil {
		return nil, err
	}
	req.ID = StringID(q.Method)
	ctx, stop := c.whileConnected(ctx)
	defer stop()
	h := chain(HandlerFunc(c.serveQuestion), c.client.opts.AnswerMiddleware)
	res, err := serveSafely(ctx, h, req, c.client.opts.Logger)
	if err != nil {
		return nil, err
	}
	return encodeAnswer(res)
}

// whileConnected returns a context that ends with the connection as well: an answer could not
// be sent any more. Stop releases it.
func (c *Conn) whileConnected(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // until stop
		select {
		case <-c.ctx.Done():
			cancel(context.Cause(c.ctx))
		case <-c.wire.Done():
			cancel(c.wire.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// encodeAnswer encodes the result of a function of the client. A result that panics, for
// example because it contains a nil block of content, must not end the process.
func encodeAnswer(res Result) (raw json.RawMessage, err error) {
	defer func() {
		if recover() != nil {
			raw, err = nil, &Error{Code: CodeInternalError, Message: "the answer could not be encoded", Cause: errPanicked}
		}
	}()
	return marshal(res)
}

// A badQuestionError is the error of an invalid question of a server.
type badQuestionError struct{ error }

func (e badQuestionError) Unwrap() error { return e.error }

// serveQuestion answers a question after the middleware.
func (c *Conn) serveQuestion(ctx context.Context, req *Request) (Result, error) {
	if !c.client.answers(InputRequest{Method: req.Method, Params: req.Params()}) {
		return nil, badQuestionError{NewMethodNotFoundError(req.Method)}
	}
	switch req.Method {
	case MethodElicit:
		return c.elicit(ctx, req)
	case MethodCreateMessage:
		return c.sample(ctx, req)
	default:
		return &ListRootsResult{Roots: c.Roots()}, nil
	}
}

// sample calls the function for a request to the model.
func (c *Conn) sample(ctx context.Context, req *Request) (Result, error) {
	var p CreateMessageParams
	if err := req.Decode(&p); err != nil {
		return nil, badQuestionError{err}
	}
	if slices.Contains(p.Messages, nil) || slices.Contains(p.Tools, nil) {
		return nil, badQuestionError{Errorf(CodeInvalidParams, "params.messages and params.tools must hold objects, not null")}
	}
	if p.Messages == nil || isAbsent(req.Params(), "maxTokens") {
		return nil, badQuestionError{Errorf(CodeInvalidParams, "params.messages and params.maxTokens are required")}
	}
	if (p.Tools != nil || p.ToolChoice != nil) && !c.client.opts.SampleTools {
		return nil, badQuestionError{Errorf(CodeInvalidParams, "the client did not declare sampling.tools")}
	}
	return answered(c.client.opts.Sample(ctx, &p))
}

// isAbsent reports whether an object has no value, or null, for a name.
func isAbsent(object json.RawMessage, name string) bool {
	value := jsonscan.Member(object, name)
	return value == nil || string(value) == "null"
}

// answered returns the answer of a function of the client as a Result. A nil answer is an
// error.
func answered[R any, P interface {
	*R
	Result
}](r P, err error) (Result, error) {
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, Errorf(CodeInternalError, "the client's function returned neither an answer nor an error")
	}
	return r, nil
}

// elicit calls the function for a form or a URL. It completes an accepted form with the
// defaults of its schema, and validates it.
func (c *Conn) elicit(ctx context.Context, req *Request) (Result, error) {
	var p ElicitParams
	if err := req.Decode(&p); err != nil {
		return nil, badQuestionError{err}
	}
	ask := c.client.opts.Elicit
	if p.Mode == "url" {
		if err := checkVisit(p.URL); err != nil {
			return nil, badQuestionError{err}
		}
		ask = c.client.opts.ElicitURL
	}
	form, err := compileForm(&p, nil)
	if err != nil {
		return nil, err
	}
	res, err := ask(ctx, &p)
	if err != nil || res == nil {
		return answered(res, err)
	}
	filled := *res
	if p.Mode == "url" || res.Action != ActionAccept {
		filled.Content = nil // only an accepted form has content
		return &filled, nil
	}
	if filled.Content, err = fillForm(ctx, form, res.Content); err != nil {
		return nil, err
	}
	return &filled, nil
}

// checkVisit checks a URL that a server sends the user to. Programs pass it to the
// operating system to open, which may run scripts and programs for other schemes. A user
// name in the URL makes it look like another host.
func checkVisit(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || printable.Line(raw) != raw:
		return Errorf(CodeInvalidParams, "params.url is not the URL of a page")
	case u.User != nil:
		return Errorf(CodeInvalidParams, "params.url must not have user information")
	case u.Scheme == "https", u.Scheme == "http" && network.IsLoopback(u.Hostname()):
		return nil
	}
	return Errorf(CodeInvalidParams, "params.url must be https, or http on this machine")
}

func fillForm(ctx context.Context, form *jsonschema.Schema, content json.RawMessage) (json.RawMessage, error) {
	if content == nil {
		content = json.RawMessage("{}")
	}
	if !jsonscan.IsObject(content) || jsonscan.Valid(content, 0) != nil {
		return nil, Errorf(CodeInvalidParams, "the answer to a form must be an object")
	}
	filled := form.WithDefaults(content)
	if err := form.Validate(ctx, filled); err != nil {
		return nil, Errorf(CodeInvalidParams, "the answer does not fit the form: %w", err)
	}
	return filled, nil
}

// compileForm compiles the schema of a form, so that an invalid one is refused before the
// user fills it in. It returns nil for a URL.
func compileForm(p *ElicitParams, opts *jsonschema.Options) (*jsonschema.Schema, error) {
	if p.Mode == "url" {
		return nil, nil
	}
	form, err := jsonschema.Compile(p.RequestedSchema, opts)
	if err != nil {
		return nil, badQuestionError{Errorf(CodeInvalidParams, "requestedSchema is not the schema of a form: %w", err)}
	}
	return form, nil
}

// Roots returns the roots with which the connection answers roots/list.
func (c *Conn) Roots() []Root {
	c.mustBeMade()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.roots)
}

// checkRoots checks that roots are file URIs (client/roots).
func checkRoots(roots []Root) error {
	for _, r := range roots {
		if !strings.HasPrefix(r.URI, "file://") {
			return fmt.Errorf("mcp: the root %q is not a file:// URI", r.URI)
		}
	}
	return nil
}

// AddRoots adds roots, which are file:// URIs, and replaces those with the same URIs. It
// notifies a legacy server.
func (c *Conn) AddRoots(ctx context.Context, roots ...Root) error {
	c.mustBeMade()
	if err := checkRoots(roots); err != nil {
		return err
	}
	return c.changeRoots(ctx, func() {
		for _, r := range roots {
			c.roots = slices.DeleteFunc(c.roots, func(old Root) bool { return old.URI == r.URI })
			c.roots = append(c.roots, r)
		}
	})
}

// RemoveRoots removes roots by URI. It notifies a legacy server.
func (c *Conn) RemoveRoots(ctx context.Context, uris ...string) error {
	c.mustBeMade()
	return c.changeRoots(ctx, func() {
		c.roots = slices.DeleteFunc(c.roots, func(old Root) bool { return slices.Contains(uris, old.URI) })
	})
}

func (c *Conn) changeRoots(ctx context.Context, change func()) error {
	c.mu.Lock()
	c.roots = slices.Clone(c.roots)
	change()
	c.mu.Unlock()
	return c.legacy.rootsChanged(ctx)
}

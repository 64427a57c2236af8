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

// Limits on the questions about one request. maxQuestions also limits the handlers of a Mux, in both eras.
const (
	maxRounds    = 32 // rounds of questions
	maxQuestions = 16 // questions per round
	maxAsking    = 4  // questions answered concurrently
)

func (c *Conn) errTooManyRounds() error {
	return Errorf(CodeInternalError, "the server asked in %d rounds without coming to an end", c.client.opts.maxRounds)
}

// checkAsked returns an error if the server asks too many questions at once or, for a
// forwarded request, a question for which the sender did not declare a capability.
func (c *Conn) checkAsked(req *Request, asked *InputRequired) error {
	if n, limit := len(asked.InputRequests), c.client.opts.maxQuestions; n > limit {
		return Errorf(CodeInternalError, "the server asked %d questions at once; the limit is %d", n, limit)
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

// answersAll reports whether the client has a function for every question.
func (c *Conn) answersAll(asked *InputRequired) bool {
	for _, q := range asked.InputRequests {
		if !c.client.answers(q) {
			return false
		}
	}
	return true
}

// answerAll answers the questions, at most maxAsking concurrently. Meanwhile, the timeout of
// the call is paused. If a question cannot be answered, the call fails and no further
// questions are asked, because the error cannot be reported to the server (client/sampling).
func (c *Conn) answerAll(ctx context.Context, asked *InputRequired) (map[string]json.RawMessage, error) {
	defer callclock.Pause(ctx)()
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

// unanswered returns the outcome of a request about which the client could not answer a
// question. It is the same as in the legacy era, where the server gets the error and
// returns a failed tool result. An invalid question is an error.
func (c *Conn) unanswered(ctx context.Context, req *Request, err error) (Result, error) {
	switch {
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case hasEnded(c):
		return nil, privateWireError(ctx, c.wire.Err())
	}
	if _, bad := errors.AsType[badQuestionError](err); bad {
		return nil, err
	}
	return unansweredResult(ctx, req, err)
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

// Answer lets the functions of the client answer a question, through
// ClientOptions.AnswerMiddleware, as if the server had asked it about a request. Extensions
// whose servers ask in other ways use it. While the client answers, the timeout of the call
// that ctx belongs to is paused. An invalid question, and one for which the client has no
// function, is an error.
func (c *Conn) Answer(ctx context.Context, q InputRequest) (json.RawMessage, error) {
	c.mustBeMade()
	defer callclock.Pause(ctx)()
	return c.answer(ctx, q)
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
	h := wrap(HandlerFunc(c.serveQuestion), c.client.opts.AnswerMiddleware)
	res, err := serveSafely(ctx, h, req, c.client.opts.Logger)
	if err != nil {
		return nil, err
	}
	return encodeAnswer(res)
}

// whileConnected returns a context that is also cancelled when the connection ends, because
// an answer could no longer be sent. stop releases its resources.
func (c *Conn) whileConnected(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // until stop
		select {
		case <-c.ctx.Done():
			cancel(context.Cause(c.ctx))
		case <-c.wire.Done():
			cancel(privateWireError(ctx, c.wire.Err()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// encodeAnswer encodes the result of a client function. If encoding panics, for example
// because of a nil content block, it returns an error.
func encodeAnswer(res Result) (raw json.RawMessage, err error) {
	defer func() {
		if recover() != nil {
			raw, err = nil, &Error{Code: CodeInternalError, Message: "the answer could not be encoded", Cause: errPanicked}
		}
	}()
	return marshal(res)
}

// A badQuestionError is the error for an invalid question from the server.
type badQuestionError struct{ error }

func (e badQuestionError) Unwrap() error { return e.error }

// serveQuestion answers a question. It is the handler inside
// ClientOptions.AnswerMiddleware.
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

// sample validates a sampling/createMessage request and calls ClientOptions.Sample.
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
	if (p.Tools != nil || p.ToolChoice != nil) && !c.client.opts.samplesTools() {
		return nil, badQuestionError{Errorf(CodeInvalidParams, "the client did not declare sampling.tools")}
	}
	res, err := c.client.opts.Sample(ctx, c, &p)
	if err == nil && res != nil && (res.Role == "" || len(res.Content) == 0 || res.Model == "") {
		return nil, Errorf(CodeInternalError, "the client's function returned an answer without role, content or model")
	}
	return answerResult(res, err)
}

// isAbsent reports whether a member of an object is missing or null.
func isAbsent(object json.RawMessage, name string) bool {
	value := jsonscan.Member(object, name)
	return value == nil || string(value) == "null"
}

// answerResult returns the answer of a client function as a Result, or an error if the answer
// is nil.
func answerResult[R any, P interface {
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

// elicit calls the function for a form or a URL. It fills in the schema's defaults in an
// accepted form and validates it.
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
	res, err := ask(ctx, c, &p)
	if err != nil || res == nil {
		return answerResult(res, err)
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

// checkVisit validates a URL that a server sends the user to. Programs pass it to the
// operating system, which may run scripts and programs for other schemes. User information
// can make the URL look like one of another host.
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

// compileForm compiles the schema of a form, so that an invalid schema is rejected before
// the user fills in the form. It returns nil in URL mode.
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

// Roots returns the roots that the connection sends in response to roots/list.
//
// Deprecated: the specification has deprecated roots. Take directories as arguments of tools or as URIs of
// resources, or from the configuration of the server. It works while a supported revision has
// roots.
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

// AddRoots adds roots, which must have file:// URIs, and replaces existing roots with the
// same URIs. It notifies a legacy server.
//
// Deprecated: the specification has deprecated roots. Take directories as arguments of tools or as URIs of
// resources, or from the configuration of the server. It works while a supported revision has
// roots.
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
//
// Deprecated: the specification has deprecated roots. Take directories as arguments of tools or as URIs of
// resources, or from the configuration of the server. It works while a supported revision has
// roots.
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp/transport"
)

// Internal is for the other packages of this module; no others have a key. The functions that
// it returns may change at any time.
func Internal(seam.Key) internals { return internals{} }

// internals are the functions of this package that transports, extensions and middleware of
// this module need beside the exported ones.
type internals struct{}

// NewRequest returns the request or notification in m. If the params are invalid, it returns
// a request without params and an [*Error].
func (internals) NewRequest(m *transport.Message) (*Request, error) {
	return requestOf(m)
}

// Serve calls h for req on behalf of a transport. Notifications about the request are sent to
// n, which may be nil, until h returns. A panic in h is logged with its stack and becomes an
// internal error without details. A panic with [ErrAbortHandler] is not logged.
func (internals) Serve(ctx context.Context, h Handler, req *Request, n notifier, logger *slog.Logger) (Result, error) {
	return serve(ctx, h, req, n, logger)
}

// ContextWithRequest returns a context for a handler of req.
func (internals) ContextWithRequest(ctx context.Context, req *Request) context.Context {
	return contextWithRequest(ctx, req)
}

// IsModern reports whether req carries its own protocol version.
func (internals) IsModern(req *Request) bool { return req.isModern() }

// PassesTasks reports whether a task that answers req, which is sent on c, is passed on to
// the sender of req.
func (internals) PassesTasks(c *Conn, req *Request) bool { return c.passesTasks(req) }

// CheckMeta checks that a request of the newest revision carries the required metadata
// (basic/index#meta).
func (internals) CheckMeta(req *Request) error { return req.checkMeta() }

// CheckVersion checks that the protocol version of req is supported.
func (internals) CheckVersion(req *Request) error { return req.checkVersion() }

// AppendError appends an error response to dst. A zero id is omitted.
func (internals) AppendError(dst []byte, id ID, err error) []byte {
	return appendErrorResponse(dst, id, err)
}

// Detach returns a copy of req that is served separately, with its own stream of
// notifications.
func (internals) Detach(req *Request) *Request {
	d := req.Clone()
	d.call = req.sharedCall().detached()
	return d
}

// DetachForTask is like Detach, but the copy always has a progress token, and InTask returns
// true for it.
func (i internals) DetachForTask(req *Request) *Request {
	d := i.Detach(req)
	d.call.inTask = true
	if d.params.progressToken.IsZero() {
		d.params.progressToken = IntID(1)
	}
	return d
}

// InTask reports whether req is served by a task. Its outcome is that of the task, so it must
// not be answered with another task.
func (internals) InTask(req *Request) bool { return req.sharedCall().inTask }

// ProgressOf returns the function that receives the progress of a request sent by a client, or
// nil if progress is not wanted.
func (internals) ProgressOf(ctx context.Context, req *Request) func(*ProgressParams) {
	return progressOf(ctx, req)
}

// CheckAsked returns an error if the client of a connection must not answer or pass on
// questions about req: because the server asked in as many rounds before as the client
// allows, asks too much at once, or asks something that the sender of req does not support.
func (internals) CheckAsked(c *Conn, req *Request, questions map[string]InputRequest, rounds int) error {
	if rounds >= c.client.opts.maxRounds {
		return c.errTooManyRounds()
	}
	return c.checkAsked(req, &InputRequired{InputRequests: questions})
}

// CountRounds returns a context for sending one request, and the number of rounds of questions
// about it, which is valid when the request has been answered.
func (internals) CountRounds(ctx context.Context) (context.Context, *int) {
	rounds := new(int)
	return context.WithValue(ctx, roundsKey{}, rounds), rounds
}

// AnswerAll lets the client of a connection answer questions of the server about one request.
func (internals) AnswerAll(ctx context.Context, c *Conn, questions map[string]InputRequest) (map[string]json.RawMessage, error) {
	return c.answerAll(ctx, &InputRequired{InputRequests: questions})
}

// Logger returns the logger of the client of a connection.
func (internals) Logger(c *Conn) *slog.Logger {
	c.mustBeMade()
	return c.client.opts.Logger
}

// LoggerOf returns the logger of a handler, by default slog.Default.
func (internals) LoggerOf(h Handler) *slog.Logger { return loggerOf(h) }

// PassesQuestions reports whether questions about req, which is sent on c, are passed on to
// the sender of req. The sender receives them through a mount that seals their state.
func (internals) PassesQuestions(c *Conn, req *Request, questions map[string]InputRequest) bool {
	return c.client.opts.Forward && req.mounts != "" && !c.answersAll(&InputRequired{InputRequests: questions})
}

// QuestionDigest returns a digest of everything in a question that the client is shown.
func (internals) QuestionDigest(q InputRequest) string { return q.digest() }

// CheckAnswer returns an error if answer is not a valid answer to q, whose key is key.
func (internals) CheckAnswer(ctx context.Context, key string, q InputRequest, answer json.RawMessage) error {
	return checkAnswer(ctx, key, q, answer)
}

// AsError returns the error that is sent to a peer for err.
func (internals) AsError(err error) *Error { return asError(err) }

// Base returns the ResultBase of res.
func (internals) Base(res Result) *ResultBase { return res.base() }

// WithAnswers returns req with the answers and the state that a client of the newest revision
// adds when it repeats the request.
func (internals) WithAnswers(req *Request, answers map[string]json.RawMessage, state *string) (*Request, error) {
	return req.withAnswers(answers, state)
}

// Unanswered returns the outcome of a request whose question the client could not answer.
func (internals) Unanswered(ctx context.Context, req *Request, err error) (Result, error) {
	return unansweredResult(ctx, req, err)
}

// IsNamed reports whether requests of a method are about one tool, prompt, resource or task,
// which [Request.Name] returns.
func (internals) IsNamed(method string) bool { return isNamed(method) }

// Observe calls saw with each notification about req, in order, until stop is called. saw must
// not send notifications itself.
func (internals) Observe(req *Request, saw func(method string, params json.RawMessage)) (stop func()) {
	return req.sharedCall().observe(saw)
}

// Publish applies MuxOptions.PublicError to the outcome of a request that m serves.
func (internals) Publish(ctx context.Context, m *Mux, res Result, err error) (Result, error) {
	return m.opts.applyPublicError(ctx, res, err)
}

// Surround wraps all requests that m serves in mw, outside of its other middleware, until
// stop is called. mw sees errors before MuxOptions.PublicError changes them. Requests in
// flight when stop is called remain wrapped.
func (internals) Surround(m *Mux, mw Middleware) (stop func()) { return m.wrapOuter(mw) }

// Registrations returns the registrations of m and of the muxes mounted on it.
func (internals) Registrations(m *Mux) []seam.Registration { return m.registrations() }

// Subscriptions returns the open subscriptions of m.
func (internals) Subscriptions(m *Mux) []seam.Subscription { return m.hub.subscriptions() }

// Sender returns the [Implementation] that the sender of req claims to be, as JSON, or nil.
func (internals) Sender(req *Request) json.RawMessage { return req.peer.info }

// Reshape returns middleware that reshapes the tools of a server, by their own names. It
// returns an error if the shapes contradict each other.
func (internals) Reshape(shapes map[string]Shape) (Middleware, error) {
	s, err := newShapes(shapes)
	if err != nil {
		return nil, err
	}
	return s.around, nil
}

// ReshapeFunc is like Reshape, with functions that return the shape of a tool with an own name,
// and its own name.
func (internals) ReshapeFunc(shape func(name string) Shape, own func(name string) string) Middleware {
	return newShapeFuncs(shape, own).around
}

// CallOf returns a tools/call with another name and other arguments. No headers mirror them.
func (internals) CallOf(req *Request, name string, args json.RawMessage) (*Request, error) {
	var unmirrored []string
	eachMember(args, func(name string, _ json.RawMessage) { unmirrored = append(unmirrored, name) })
	return req.withCall(name, args, unmirrored)
}

// Instead returns a request that serves the same call as req with another method and params, an
// encoded object. It keeps the metadata, the answers and the state of req, and its URIs are in
// normal form, as those of a request that a mux has received.
func (internals) Instead(req *Request, method string, params json.RawMessage) (*Request, error) {
	whole := jsonscan.AppendMembers([]byte{'{'}, params)
	whole = whole[:len(whole)-1]
	for _, name := range []string{"_meta", "inputResponses", "requestState"} {
		if value := jsonscan.Member(req.Params(), name); value != nil {
			whole = append(jsonscan.AppendKey(whole, name), value...)
		}
	}
	c := req.Clone()
	c.Method = method
	if err := c.setParams(append(whole, '}')); err != nil {
		return nil, err
	}
	return c.withNormalURIs(0), nil
}

// CheckArguments returns the result of a call whose arguments are invalid, or nil. h was made
// by ToolFunc.
func (internals) CheckArguments(ctx context.Context, h Handler, req *Request) *CallToolResult {
	if c, ok := h.(interface {
		checkArguments(ctx context.Context, args json.RawMessage) *CallToolResult
	}); ok {
		return c.checkArguments(ctx, req.Arguments())
	}
	return nil
}

// Tools iterates over all tools that h lists for the sender of req.
func (internals) Tools(ctx context.Context, h Handler, req *Request) iter.Seq2[*Tool, error] {
	return eachTool(ctx, h, req)
}

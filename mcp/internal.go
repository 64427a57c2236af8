// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp/transport"
)

// Internal is for the transports of this module, which alone have a key. What it
// returns can change at any time.
func Internal(seam.Key) internals { return internals{} }

// internals are the functions of this package that the server side of a transport
// needs.
type internals struct{}

// NewRequest returns the request or notification that m is. If its params cannot be
// read, it returns an [*Error] as well, and a request without params.
func (internals) NewRequest(m *transport.Message) (*Request, error) {
	return requestOf(m)
}

// Serve calls h for req on behalf of a transport. Notifications about the request go to
// n, which may be nil, until h returns. A panic in h is logged with its stack, and
// becomes an internal error without details; a panic with [ErrAbortHandler] is not
// logged.
func (internals) Serve(ctx context.Context, h Handler, req *Request, n notifier, logger *slog.Logger) (Result, error) {
	return serve(ctx, h, req, n, logger)
}

// ContextWithRequest returns a context for a handler of req.
func (internals) ContextWithRequest(ctx context.Context, req *Request) context.Context {
	return contextWithRequest(ctx, req)
}

// IsModern reports whether req names the revision that it speaks itself.
func (internals) IsModern(req *Request) bool { return req.isModern() }

// DeclaresExtension reports whether the sender of req declares an extension. It does not
// decode the capabilities.
func (internals) DeclaresExtension(req *Request, id string) bool {
	return declares(req, id)
}

// PassesTasks reports whether a task that answers a request, which c has sent, is for the
// sender of that request.
func (internals) PassesTasks(c *Conn, req *Request) bool { return c.passesTasks(req) }

// CheckMeta checks that a request of the newest revision has the metadata that every
// one must have (basic/index#meta).
func (internals) CheckMeta(req *Request) error { return req.checkMeta() }

// CheckVersion checks that the revision which req names is served.
func (internals) CheckVersion(req *Request) error { return req.checkVersion() }

// AppendResponse appends the response to req, as the newest revision has it, to dst. A
// result that cannot be encoded becomes an internal error.
func (internals) AppendResponse(dst []byte, req *Request, res Result, err error) []byte {
	return appendResponse(dst, req, res, err)
}

// AppendError appends an error response to dst. A zero id is left out.
func (internals) AppendError(dst []byte, id ID, err error) []byte {
	return appendErrorResponse(dst, id, err)
}

// Detach returns a copy of req that is served by itself: with a stream of notifications of
// its own.
func (internals) Detach(req *Request) *Request {
	d := req.Clone()
	d.call = req.sharedCall().detached()
	return d
}

// DetachWithProgress returns a copy of req that is served by itself, as Detach does, and whose
// sender wants progress.
func (i internals) DetachWithProgress(req *Request) *Request {
	d := i.Detach(req)
	if d.params.progressToken.IsZero() {
		d.params.progressToken = IntID(1)
	}
	return d
}

// MarshalResult encodes a result that is sent inside of another one.
func (internals) MarshalResult(res Result) (json.RawMessage, error) {
	if err := checkResult(res); err != nil {
		return nil, err
	}
	return encodeAnswer(res)
}

// DecodeResult decodes the result of a method.
func (internals) DecodeResult(method string, raw json.RawMessage) (Result, error) {
	return decodeResult(method, raw)
}

// Send sends a request through the middleware of a connection. Errors are returned as they
// are.
func (internals) Send(ctx context.Context, c *Conn, req *Request) (Result, error) {
	return c.serve(ctx, req)
}

// ProgressOf returns the function that gets the progress of a request which a client sends,
// nil if there is none.
func (internals) ProgressOf(ctx context.Context, req *Request) func(*ProgressParams) {
	return progressOf(ctx, req)
}

// Answer has the client of a connection answer a question of the server.
func (internals) Answer(ctx context.Context, c *Conn, q InputRequest) (json.RawMessage, error) {
	return c.answer(ctx, q)
}

// PassesQuestions reports whether questions about a request, which c has sent, are for the
// sender of that request, who gets them through a mount that seals their state.
func (internals) PassesQuestions(c *Conn, req *Request, questions map[string]InputRequest) bool {
	return c.client.opts.Forward && req.mounts != "" && !c.answersAll(&InputRequired{InputRequests: questions})
}

// CheckAnswer returns an error if answer cannot be the answer to q, whose key is given.
func (internals) CheckAnswer(ctx context.Context, key string, q InputRequest, answer json.RawMessage) error {
	return checkAnswer(ctx, key, q, answer)
}

// AsError returns the error that a peer is told for err.
func (internals) AsError(err error) *Error { return asError(err) }

// Base returns the members of res that every result has.
func (internals) Base(res Result) *ResultBase { return res.base() }

// WithAnswers returns req with what a client of the newest revision adds when it repeats
// a request that asked.
func (internals) WithAnswers(req *Request, answers map[string]json.RawMessage, state *string) (*Request, error) {
	return req.answered(answers, state)
}

// Unanswered returns the outcome of a call whose question the client could not answer.
func (internals) Unanswered(ctx context.Context, req *Request, err error) (Result, error) {
	return unanswered(ctx, req, err)
}

// IsCode reports whether an error code is one of the specification's, of any revision, or of
// this package.
func (internals) IsCode(code int) bool { return isCode(code) }

// IsNamed reports whether requests of a method are about one thing, which [Request.Name]
// names.
func (internals) IsNamed(method string) bool { return isNamed(method) }

// TaskTerms returns what req demands of tasks, nil if nothing.
func (internals) TaskTerms(req *Request) *tasking.Terms { return req.taskTerms() }

// Observe calls saw with each notification about req that is sent until stop is called, in
// order. Saw must not send one itself.
func (internals) Observe(req *Request, saw func(method string, params json.RawMessage)) (stop func()) {
	return req.sharedCall().observe(saw)
}

// Publish applies MuxOptions.PublicError to the outcome of a request that m serves.
func (internals) Publish(ctx context.Context, m *Mux, res Result, err error) (Result, error) {
	return m.opts.publish(ctx, res, err)
}

// Surround puts mw around all requests that m serves, outside of its other middleware, until
// stop is called. Mw sees errors before MuxOptions.PublicError changes them. Requests that are
// being served when stop is called remain in mw.
func (internals) Surround(m *Mux, mw Middleware) (stop func()) { return m.surround(mw) }

// Registrations returns what is registered on m, and on the muxes mounted there.
func (internals) Registrations(m *Mux) []seam.Registration { return m.registrations() }

// Subscriptions returns the subscriptions at m.
func (internals) Subscriptions(m *Mux) []seam.Subscription { return m.hub.subscriptions() }

// Sender returns what the sender of req says about itself, an [Implementation], or nil.
func (internals) Sender(req *Request) json.RawMessage { return req.peer.info }

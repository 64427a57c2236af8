// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp/transport"
)

// The error codes of JSON-RPC and of the specification (basic/index#error-codes).
// Codes of an application's own lie outside -32768…-32000.
const (
	CodeParseError         = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternalError      = -32603
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

// codeResourceNotFound is an older code for a resource that does not exist. Clients accept
// it still (server/resources).
const codeResourceNotFound = -32002

// isCode reports whether code is one of the specification's, of any revision, or of this
// package. Peers can make up others.
func isCode(code int) bool {
	switch code {
	case CodeParseError, CodeInvalidRequest, CodeMethodNotFound, CodeInvalidParams, CodeInternalError,
		CodeHeaderMismatch, CodeMissingCapability, CodeUnsupportedVersion, codeResourceNotFound,
		CodeInsufficientScope, CodeTimeout, CodeTooLarge, CodeRateLimited:
		return true
	}
	return isLegacyCode(code)
}

// An Error is an error response of the protocol. Handlers return it to choose the code and
// the data that the peer receives. Callers find it in the error of a call with errors.As,
// unchanged by the servers in between.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`       // one concise sentence
	Data    json.RawMessage `json:"data,omitzero"` // raw JSON, nil if there is none
	Cause   error           `json:"-"`             // for logs; never sent
}

// Errorf returns an Error with a formatted message. An error that is wrapped with %w is
// found with errors.Is and errors.As; its text is part of the message for the peer.
func Errorf(code int, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if _, several := err.(interface{ Unwrap() []error }); several {
		cause = err
	}
	return &Error{Code: code, Message: err.Error(), Cause: cause}
}

// WithData sets the data of e to the encoding of v and returns e. It panics if
// v cannot be encoded.
func (e *Error) WithData(v any) *Error {
	data, err := marshal(v)
	if err != nil {
		panic(fmt.Sprintf("mcp: error data: %v", err))
	}
	e.Data = data
	return e
}

// Error returns the message, the code and the cause. Control characters are escaped,
// because the message may come from a peer.
func (e *Error) Error() string {
	message := printable.Line(e.Message)
	if e.Cause == nil {
		return fmt.Sprintf("%s (code %d)", message, e.Code)
	}
	cause := e.Cause.Error()
	if cause == e.Message {
		return fmt.Sprintf("%s (code %d)", message, e.Code)
	}
	return fmt.Sprintf("%s (code %d): %s", message, e.Code, printable.Text(cause))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the code that is sent for err: that of the [*Error] in it, or
// CodeInternalError. It returns 0 for nil.
func CodeOf(err error) int {
	if err == nil {
		return 0
	}
	return asError(err).Code
}

// asError returns the Error that is sent to a peer for err.
func asError(err error) *Error {
	if private := privateError(err); private != nil {
		return &Error{Code: CodeInternalError, Message: cmp.Or(private.Public, internalError), Cause: err}
	}
	if coded := codedError(err); coded != nil {
		return coded
	}
	return &Error{Code: CodeInternalError, Message: err.Error(), Cause: err}
}

// internalError is the message of an error without details.
const internalError = "internal error"

// codedError returns the error of the protocol that err is or wraps, or nil. One in a
// PrivateError is not sent.
func codedError(err error) *Error {
	if privateError(err) != nil {
		return nil //nolint:nilerr // err is not one to send
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*transport.Error](err); ok {
		return fromWire(e)
	}
	if e, ok := errors.AsType[*transport.MessageError](err); ok {
		return &Error{Code: e.Code, Message: e.Error(), Cause: e}
	}
	return nil
}

// NewUnknownNameError returns the error for a name that is not registered. The kind is
// "tool", "prompt" or, in completion, "resource". Middleware that hides something returns
// it as well.
func NewUnknownNameError(kind, name string) *Error {
	return Errorf(CodeInvalidParams, "unknown %s %q", kind, name)
}

// NewResourceNotFoundError returns the error for a URI that names no resource. Clients of
// older revisions get it with the code -32002.
func NewResourceNotFoundError(uri string) *Error {
	return Errorf(CodeInvalidParams, "resource %q not found", uri).WithData(map[string]string{"uri": uri})
}

// isResourceNotFound recognizes [NewResourceNotFoundError] by its form, which is all that
// is left of it after it came over a wire.
func isResourceNotFound(err error) bool {
	var e *Error
	if err == nil || !errors.As(err, &e) || e.Data == nil {
		return false
	}
	var data struct {
		URI string `json:"uri"`
	}
	return (e.Code == CodeInvalidParams || e.Code == codeResourceNotFound) && unmarshal(e.Data, &data) == nil && data.URI != ""
}

// NewMethodNotFoundError returns the error for a method that is not served.
func NewMethodNotFoundError(method string) *Error {
	return Errorf(CodeMethodNotFound, "method %q not found", method)
}

// newMissingCapabilityError returns the error for a request that only a client with more
// capabilities than it declared can be served.
func newMissingCapabilityError(required *ClientCapabilities) *Error {
	return Errorf(CodeMissingCapability, "the client did not declare a capability that this request needs: %s", strings.Join(required.names(), ", ")).
		WithData(map[string]*ClientCapabilities{"requiredCapabilities": required})
}

// newUnsupportedVersionError returns the error for a request that names a revision which
// is not served to such requests.
func newUnsupportedVersionError(requested string) *Error {
	return Errorf(CodeUnsupportedVersion, "protocol version %q is not supported", requested).
		WithData(map[string]any{"supported": ModernVersions(), "requested": requested})
}

// A CancelError is the cause of a context that the peer cancelled.
type CancelError struct {
	Reason string // given by the peer, possibly empty
}

func (e *CancelError) Error() string {
	if e.Reason == "" {
		return "mcp: cancelled by the peer"
	}
	return "mcp: cancelled by the peer: " + e.Reason
}

// Is reports whether target is context.Canceled, the error that a handler returns if it
// returns that of its context.
func (e *CancelError) Is(target error) bool { return target == context.Canceled }

// ErrAbortHandler is a value to panic with to abort a request without a log entry, like
// http.ErrAbortHandler.
var ErrAbortHandler = errors.New("mcp: abort handler")

// Errors of connections.
var (
	// ErrClosed is the error of a connection that was closed, and the cause of a context
	// that ended because the connection, the session or the server was closed.
	ErrClosed = transport.ErrClosed
	// ErrUnreadable means that the response is not one of this protocol, for example
	// malformed JSON, a message over the limit or a web page. The request may have been
	// served.
	ErrUnreadable = transport.ErrUnreadable
	// ErrSessionLost means that the server does not know the session any more, and that the
	// request failed in a new one as well. The request had no effect.
	ErrSessionLost = transport.ErrSessionLost
	// ErrUnauthorized means that the server requires authentication.
	ErrUnauthorized = transport.ErrUnauthorized
)

// fromWire returns the error of a response.
func fromWire(e *transport.Error) *Error {
	return &Error{Code: e.Code, Message: e.Message, Data: e.Data, Cause: e.Cause}
}

// toWire returns the error object that a peer gets for err.
func toWire(err error) *transport.Error {
	e := asError(err)
	return &transport.Error{Code: e.Code, Message: e.Message, Data: e.Data}
}

// Error codes that the specification leaves to applications. They lie outside of its range,
// and are the corresponding status codes of HTTP.
const (
	CodeInsufficientScope = 403
	CodeTimeout           = 408
	CodeTooLarge          = 413
	CodeRateLimited       = 429
)

// A ScopeError lists the scopes that an operation needs. It is the cause of
// [NewInsufficientScopeError]. Over HTTP it becomes a challenge that lets the client request
// the scopes (basic/authorization#scope-challenge-handling).
type ScopeError struct {
	Required []string // including the granted ones
}

func (e *ScopeError) Error() string {
	return "mcp: the operation needs the scopes " + strings.Join(e.Required, " ")
}

// NewInsufficientScopeError returns the error for a caller who lacks a scope that the
// operation needs. Required lists all scopes of the operation, not only the missing ones.
func NewInsufficientScopeError(required ...string) *Error {
	e := Errorf(CodeInsufficientScope, "the caller was not granted the scopes that this needs: %s", strings.Join(required, " "))
	e.Cause = &ScopeError{required}
	return e.WithData(map[string][]string{"requiredScopes": required})
}

// retryData is the data of [NewRateLimitedError].
type retryData struct {
	RetryAfterMs *int64 `json:"retryAfterMs"`
}

// NewRateLimitedError returns the error for a caller who sends too many requests, or for
// an overloaded server. The caller may try again after that time, which is rounded up to
// milliseconds; a negative one counts as zero.
func NewRateLimitedError(after time.Duration, format string, args ...any) *Error {
	ms := max(0, int64((after+time.Millisecond-1)/time.Millisecond))
	return Errorf(CodeRateLimited, "%s", fmt.Sprintf(format, args...)).WithData(retryData{&ms})
}

// RetryAfter returns the time after which a request that failed with err may be repeated,
// if err is a [NewRateLimitedError], also one that a peer sent.
func RetryAfter(err error) (time.Duration, bool) {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != CodeRateLimited {
		return 0, false
	}
	var data retryData
	if unmarshal(e.Data, &data) != nil || data.RetryAfterMs == nil {
		return 0, false
	}
	const most = int64(24 * time.Hour / time.Millisecond) // keeps a peer's mistake from overflowing
	return time.Duration(min(max(0, *data.RetryAfterMs), most)) * time.Millisecond, true
}

// An OutputError is returned by [Conn.CallTool] if the structured content of a result
// does not conform to the output schema of the tool, or could not be validated.
//
// Err wraps a [*jsonschema.ValidationError] if the content does not conform. Otherwise
// nothing is known of it: Err says that the schema cannot be compiled (it refers to
// another document, or names an unknown dialect, say), or it wraps
// [jsonschema.ErrTooMuchWork] or the cause of the context's end.
type OutputError struct {
	Tool   string
	Result *CallToolResult // as the server sent it, for callers that do without the check
	Err    error
}

func (e *OutputError) Error() string {
	if _, invalid := errors.AsType[*jsonschema.ValidationError](e.Err); invalid {
		return fmt.Sprintf("mcp: the output of %q does not fit its schema: %v", e.Tool, e.Err)
	}
	return fmt.Sprintf("mcp: the output of %q could not be validated: %v", e.Tool, e.Err)
}

// Unwrap returns Err.
func (e *OutputError) Unwrap() error { return e.Err }

// A PrivateError is an error whose text is for logs only. Wherever a peer would read the
// text of an error, it reads Public instead, also if the PrivateError is wrapped:
//
//	return nil, &mcp.PrivateError{Public: "the notes cannot be loaded now", Err: err}
//
// An [*Error] within Err is private as well. An [*Error] around a PrivateError has its own
// message.
type PrivateError struct {
	Public string // the text for peers; empty means "internal error"
	Err    error
}

// Error returns the text of Err, or what peers read if Err is nil.
func (e *PrivateError) Error() string {
	if e.Err == nil {
		return cmp.Or(e.Public, internalError)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *PrivateError) Unwrap() error { return e.Err }

// privateError returns the PrivateError that decides what peers read of err, or nil.
func privateError(err error) *PrivateError {
	private, ok := errors.AsType[*PrivateError](err)
	if !ok {
		return nil
	}
	coded, _ := errors.AsType[*Error](err)
	if inside, _ := errors.AsType[*Error](private.Err); inside != coded {
		return nil // coded is around it
	}
	return private
}

// An ArgumentsError is the error of a failed tool ([CallToolResult.Err]) whose function was
// not called, because the arguments are invalid. Err wraps a [*jsonschema.ValidationError]
// if they do not conform to the schema.
type ArgumentsError struct {
	Err  error
	text string // for the model
}

// Error returns the explanation that the model gets. It can contain arguments.
func (e *ArgumentsError) Error() string { return cmp.Or(e.text, "invalid arguments") }

// Unwrap returns Err.
func (e *ArgumentsError) Unwrap() error { return e.Err }

// Places returns where the arguments are invalid, and why, without their values: JSON
// pointers with the violated keyword of the schema, such as "/name (maxLength)". It returns
// nil if the arguments could not be decoded or validated for another reason.
func (e *ArgumentsError) Places() []string {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](e.Err)
	if !ok {
		return nil
	}
	places := make([]string, len(invalid.Problems))
	for i, p := range invalid.Problems {
		places[i] = printable.Line(p.Pointer) + " (" + p.Keyword + ")"
	}
	return places
}

// A failure is why a tool failed. It is not sent.
type failure struct {
	err error
	// text is the block that was made of err, nil if MuxOptions.PublicError must not
	// replace it.
	text *TextContent
}

// ErrorResult returns the result of a tool that failed with err. The model gets one block
// of text: the text of err, or what a [*PrivateError] or [*Error] in it has for peers.
// [CallToolResult.Err] returns err.
func ErrorResult(err error) *CallToolResult {
	if err == nil {
		err = &PrivateError{Err: errors.New("mcp: ErrorResult of a nil error")}
	}
	text := Text(asError(err).Message)
	return &CallToolResult{Content: Contents{text}, IsError: true, failure: &failure{err, text}}
}

// fixedErrorResult returns the result of a tool that failed with err, with a text that
// MuxOptions.PublicError does not replace.
func fixedErrorResult(err error, text string) *CallToolResult {
	return &CallToolResult{Content: Contents{Text(text)}, IsError: true, failure: &failure{err: err}}
}

// Err returns the error that a tool failed with, for logs, metrics and middleware: the
// error that the function of a [ToolFunc] returned, that of [ErrorResult], or an
// [*ArgumentsError]. It is not sent, and belongs to copies of the result as well. It is nil
// if the tool did not fail, and if the reason is not known because the result was received
// from a server or made without an error.
func (r *CallToolResult) Err() error {
	if r == nil || !r.IsError || r.failure == nil {
		return nil
	}
	return r.failure.err
}

// failedTool returns the outcome of a tool whose function returned err: an error of the
// protocol stays one, any other is a result for the model.
func failedTool(err error) (Result, error) {
	if _, pending := errors.AsType[*pendingError](err); pending || codedError(err) != nil {
		return nil, err
	}
	return ErrorResult(err), nil
}

// publish applies PublicError to an outcome of the mux.
func (o *MuxOptions) publish(ctx context.Context, res Result, err error) (Result, error) {
	if o.PublicError == nil {
		return res, err
	}
	if err != nil {
		if codedError(err) != nil {
			return nil, err
		}
		return nil, sentFor(err, o.PublicError(ctx, err))
	}
	r, ok := res.(*CallToolResult)
	if !ok || r.Err() == nil || len(r.Content) != 1 || r.Content[0] != Content(r.failure.text) {
		return res, nil
	}
	public := o.PublicError(ctx, r.failure.err)
	if codedError(public) != nil {
		return nil, sentFor(r.failure.err, public)
	}
	published := *r
	published.Content = Contents{Text(sentFor(r.failure.err, public).Message)}
	published.failure = &failure{err: r.failure.err}
	return &published, nil
}

// sentFor returns the Error that is sent for err, for which PublicError returned public.
func sentFor(err, public error) *Error {
	if public == nil {
		public = &PrivateError{Err: err}
	}
	sent := *asError(public)
	sent.Cause = err
	return &sent
}

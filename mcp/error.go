// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp/transport"
)

// The error codes of JSON-RPC and of the specification (basic/index#error-codes).
// Applications must use codes outside -32768…-32000 for their own errors.
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

// codeResourceNotFound is the older code for a resource that does not exist. Clients still
// accept it (server/resources).
const codeResourceNotFound = -32002

// codeNames are the names of the codes that the newest revision and this package define.
var codeNames = map[int]string{
	CodeParseError:         "parse error",
	CodeInvalidRequest:     "invalid request",
	CodeMethodNotFound:     "method not found",
	CodeInvalidParams:      "invalid params",
	CodeInternalError:      "internal error",
	CodeHeaderMismatch:     "header mismatch",
	CodeMissingCapability:  "missing capability",
	CodeUnsupportedVersion: "unsupported version",
	CodeInsufficientScope:  "insufficient scope",
	CodeTimeout:            "timeout",
	CodeTooLarge:           "too large",
	CodeRateLimited:        "rate limited",
}

// CodeName returns a short name for an error code of any revision of the specification or of
// this package, such as "invalid params". It returns "" for all other codes. Since peers can
// send any code, use it to bound what becomes a label.
func CodeName(code int) string {
	if name, ok := codeNames[code]; ok {
		return name
	}
	return legacyCodeNames[code]
}

// An Error is an error response of the protocol. Handlers return it to choose the code and
// the data that the peer receives. Callers get it from the error of a call with errors.As;
// servers in between pass it on unchanged.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`       // one concise sentence
	Data    json.RawMessage `json:"data,omitzero"` // raw JSON, or nil
	Cause   error           `json:"-"`             // for logs; never sent
}

// Errorf returns an Error with a formatted message. errors.Is and errors.As find errors that
// are wrapped with %w. Their text is part of the message sent to the peer.
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

// Error returns the message, the code and the cause. Because the message may come from a peer,
// control characters are escaped, and the text contains at most its first 4 KiB.
func (e *Error) Error() string {
	message := printable.Line(printable.Excerpt(e.Message))
	if e.Cause == nil {
		return fmt.Sprintf("%s (code %d)", message, e.Code)
	}
	cause := e.Cause.Error()
	if cause == e.Message {
		return fmt.Sprintf("%s (code %d)", message, e.Code)
	}
	return fmt.Sprintf("%s (code %d): %s", message, e.Code, printable.Text(printable.Excerpt(cause)))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the error code that is sent for err: the code of the [*Error] that err is or
// wraps, otherwise CodeInternalError. It returns 0 if err is nil.
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

// internalError is the message of errors whose details are not sent.
const internalError = "internal error"

// codedError returns the protocol error that err is or wraps, or nil. Errors within a
// PrivateError are not sent, so they do not count.
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

// NewUnknownNameError returns the error for a name that is not registered, KindResource for
// completion only. Middleware that hides a tool or prompt should return it as well.
func NewUnknownNameError(kind Kind, name string) *Error {
	return Errorf(CodeInvalidParams, "unknown %s %q", kind, name)
}

// NewResourceNotFoundError returns the error for a resource that does not exist. Clients of
// older revisions receive the code -32002.
func NewResourceNotFoundError(uri string) *Error {
	return Errorf(CodeInvalidParams, "resource %q not found", uri).WithData(map[string]string{"uri": uri})
}

// Is reports whether target is [fs.ErrNotExist] and e is a [NewResourceNotFoundError], which
// may have been received from a server.
func (e *Error) Is(target error) bool {
	return target == fs.ErrNotExist && isResourceNotFound(e)
}

// isResourceNotFound reports whether err is a [NewResourceNotFoundError]. It compares the code
// and the data, because the error may have been received from a peer.
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

// NewMethodNotFoundError returns the error for a method that has no handler.
func NewMethodNotFoundError(method string) *Error {
	return Errorf(CodeMethodNotFound, "method %q not found", method)
}

// newMissingCapabilityError returns the error for a request that needs a capability which the
// client did not declare.
func newMissingCapabilityError(required *ClientCapabilities) *Error {
	return Errorf(CodeMissingCapability, "the client did not declare a capability that this request needs: %s", strings.Join(required.names(), ", ")).
		WithData(map[string]*ClientCapabilities{"requiredCapabilities": required})
}

// newUnsupportedVersionError returns the error for a request whose protocol version is not
// one of [ModernVersions].
func newUnsupportedVersionError(requested string) *Error {
	return Errorf(CodeUnsupportedVersion, "protocol version %q is not supported", requested).
		WithData(map[string]any{"supported": ModernVersions(), "requested": requested})
}

// A CancelError is the cause of a context whose request was cancelled by the peer.
type CancelError struct {
	Reason string // given by the peer; may be empty
}

func (e *CancelError) Error() string {
	if e.Reason == "" {
		return "cancelled by the peer"
	}
	return "cancelled by the peer: " + e.Reason
}

// Is reports whether target is context.Canceled, so that errors.Is treats a CancelError like
// the error of the cancelled context.
func (e *CancelError) Is(target error) bool { return target == context.Canceled }

// ErrAbortHandler is a sentinel panic value to abort a handler, like http.ErrAbortHandler.
// The panic is not logged.
var ErrAbortHandler = errors.New("mcp: abort handler")

// Errors of connections.
var (
	// ErrClosed is returned by operations on a closed connection. It is also the cause of a
	// context that was cancelled because the connection, the session or the server was closed.
	ErrClosed = transport.ErrClosed
	// ErrUnreadable reports that the response is not a valid message of the protocol, for
	// example malformed JSON, a message over the size limit or a web page. The request may
	// have been served.
	ErrUnreadable = transport.ErrUnreadable
	// ErrSessionLost reports that the server no longer knows the session, and that the
	// request failed in a new session as well. The request had no effect.
	ErrSessionLost = transport.ErrSessionLost
	// ErrUnauthorized reports that the server requires authentication.
	ErrUnauthorized = transport.ErrUnauthorized
)

// fromWire returns the Error for the error object of a response.
func fromWire(e *transport.Error) *Error {
	return &Error{Code: e.Code, Message: e.Message, Data: e.Data, Cause: e.Cause}
}

// toWire returns the error object that is sent to a peer for err.
func toWire(err error) *transport.Error {
	e := asError(err)
	return &transport.Error{Code: e.Code, Message: e.Message, Data: e.Data}
}

// Error codes outside the range reserved by the specification. They equal the corresponding
// HTTP status codes.
const (
	CodeInsufficientScope = 403
	CodeTimeout           = 408
	CodeTooLarge          = 413
	CodeRateLimited       = 429
)

// A ScopeError lists the scopes that an operation requires. It is the cause of
// [NewInsufficientScopeError]. Over HTTP it becomes a challenge that lets the client request
// the scopes (basic/authorization#scope-challenge-handling).
type ScopeError struct {
	Required []string // all required scopes, including those already granted
}

func (e *ScopeError) Error() string {
	return "mcp: the operation needs the scopes " + strings.Join(e.Required, " ")
}

// NewInsufficientScopeError returns the error for a caller that lacks a required scope.
// required lists all scopes that the operation needs, not only the missing ones.
func NewInsufficientScopeError(required ...string) *Error {
	e := Errorf(CodeInsufficientScope, "the caller was not granted the scopes that this needs: %s", strings.Join(required, " "))
	e.Cause = &ScopeError{required}
	return e.WithData(map[string][]string{"requiredScopes": required})
}

// retryData is the data of [NewRateLimitedError].
type retryData struct {
	RetryAfterMs *int64 `json:"retryAfterMs"`
}

// NewRateLimitedError returns the error for a caller that sends too many requests, or for
// an overloaded server. The caller may retry after the given duration, which is rounded up to
// milliseconds; a negative duration means zero.
func NewRateLimitedError(after time.Duration, format string, args ...any) *Error {
	ms := max(0, after.Milliseconds())
	if after > 0 && after%time.Millisecond != 0 {
		ms++
	}
	return Errorf(CodeRateLimited, "%s", fmt.Sprintf(format, args...)).WithData(retryData{&ms})
}

// RetryAfter returns how long to wait before retrying a request that failed with err. It
// reports false unless err is or wraps a [NewRateLimitedError], which may come from a peer, or
// an error with a method RetryAfter() (time.Duration, bool) that returns true, such as the one
// for an HTTP status. The duration is at most 24 hours.
func RetryAfter(err error) (time.Duration, bool) {
	const most = 24 * time.Hour
	var data retryData
	if e, ok := errors.AsType[*Error](err); ok && e.Code == CodeRateLimited && unmarshal(e.Data, &data) == nil && data.RetryAfterMs != nil {
		ms := min(max(0, *data.RetryAfterMs), most.Milliseconds()) // so that the duration cannot overflow
		return time.Duration(ms) * time.Millisecond, true
	}
	told, ok := errors.AsType[interface {
		error
		RetryAfter() (time.Duration, bool)
	}](err)
	if !ok {
		return 0, false
	}
	after, ok := told.RetryAfter()
	return min(max(0, after), most), ok
}

// An OutputError is returned by [Conn.CallTool] if the structured content of a result
// does not conform to the output schema of the tool, or could not be validated.
//
// If the content does not conform, Err wraps a [*jsonschema.ValidationError]. Otherwise the
// content was not validated: the schema could not be compiled (for example because it refers
// to another document or uses an unknown dialect), or Err wraps [jsonschema.ErrTooMuchWork]
// or the cause of the context's cancellation.
type OutputError struct {
	Tool   string
	Result *CallToolResult // as sent by the server, for callers that do not need validation
	Err    error
}

func (e *OutputError) Error() string {
	if _, invalid := errors.AsType[*jsonschema.ValidationError](e.Err); invalid {
		return fmt.Sprintf("the output of %q does not fit its schema: %v", e.Tool, e.Err)
	}
	return fmt.Sprintf("the output of %q could not be validated: %v", e.Tool, e.Err)
}

// Unwrap returns Err.
func (e *OutputError) Unwrap() error { return e.Err }

// A PrivateError is an error whose text is for logs only. Peers see Public instead, even if
// the PrivateError is wrapped:
//
//	return nil, &mcp.PrivateError{Public: "the notes cannot be loaded now", Err: err}
//
// An [*Error] wrapped by Err is private as well. If an [*Error] wraps a PrivateError, peers
// see the message of the [*Error].
type PrivateError struct {
	Public string // the text for peers; empty means "internal error"
	Err    error
}

// Error returns the text of Err or, if Err is nil, the text for peers.
func (e *PrivateError) Error() string {
	if e.Err == nil {
		return cmp.Or(e.Public, internalError)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *PrivateError) Unwrap() error { return e.Err }

// privateError returns the PrivateError that determines the text peers see for err, or nil.
func privateError(err error) *PrivateError {
	private, ok := errors.AsType[*PrivateError](err)
	if !ok {
		return nil
	}
	coded, _ := errors.AsType[*Error](err)
	if inside, _ := errors.AsType[*Error](private.Err); inside != coded {
		return nil // coded wraps the PrivateError
	}
	return private
}

// An ArgumentsError is the error of a tool call ([CallToolResult.Err]) whose arguments were
// invalid. The tool's function was not called. If the arguments do not conform to the schema,
// Err wraps a [*jsonschema.ValidationError].
type ArgumentsError struct {
	Err  error
	text string // for the model
}

// Error returns the explanation that is sent to the model. It may contain arguments.
func (e *ArgumentsError) Error() string { return cmp.Or(e.text, "invalid arguments") }

// Unwrap returns Err.
func (e *ArgumentsError) Unwrap() error { return e.Err }

// Places returns where and why the arguments are invalid, without their values: JSON pointers
// with the violated keyword of the schema, such as "/name (maxLength)". It returns nil if
// the arguments could not be decoded, or were not validated for another reason.
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

// A failure is the reason why a tool failed. It is not sent.
type failure struct {
	err error
	// text is the content block made from err. It is nil if MuxOptions.PublicError must not
	// replace the content.
	text *TextContent
}

// ErrorResult returns the result of a tool that failed with err. Its content is one text
// block: the text of err, or the public text of a wrapped [*PrivateError] or the message of a
// wrapped [*Error]. [CallToolResult.Err] returns err.
func ErrorResult(err error) *CallToolResult {
	if err == nil {
		err = &PrivateError{Err: errors.New("mcp: ErrorResult of a nil error")}
	}
	text := Text(asError(err).Message)
	return &CallToolResult{Content: Contents{text}, IsError: true, failure: &failure{err, text}}
}

// fixedErrorResult returns the result of a tool that failed with err, with the given text,
// which MuxOptions.PublicError does not replace.
func fixedErrorResult(err error, text string) *CallToolResult {
	return &CallToolResult{Content: Contents{Text(text)}, IsError: true, failure: &failure{err: err}}
}

// Err returns the error that the tool failed with, for logs, metrics and middleware: the
// error returned by the function of a [ToolFunc], the error passed to [ErrorResult], or an
// [*ArgumentsError]. It is not sent. Copies of the result have the same error. Err returns nil
// if the tool did not fail, or if the error is unknown because the result was received from a
// server or created without an error.
func (r *CallToolResult) Err() error {
	if r == nil || !r.IsError || r.failure == nil {
		return nil
	}
	return r.failure.err
}

// failedTool returns the outcome of a tool whose function returned err. A protocol error or a
// pendingError is returned unchanged; any other error becomes a result for the model.
func failedTool(err error) (Result, error) {
	if _, pending := errors.AsType[*pendingError](err); pending || codedError(err) != nil {
		return nil, err
	}
	return ErrorResult(err), nil
}

// applyPublicError applies PublicError to the outcome of a request.
func (o *MuxOptions) applyPublicError(ctx context.Context, res Result, err error) (Result, error) {
	if o.PublicError == nil {
		return res, err
	}
	if err != nil {
		if codedError(err) != nil {
			return nil, err
		}
		return nil, publicErrorFor(err, o.PublicError(ctx, err))
	}
	r, ok := res.(*CallToolResult)
	if !ok || r.Err() == nil || len(r.Content) != 1 || r.Content[0] != Content(r.failure.text) {
		return res, nil
	}
	public := o.PublicError(ctx, r.failure.err)
	if codedError(public) != nil {
		return nil, publicErrorFor(r.failure.err, public)
	}
	published := *r
	published.Content = Contents{Text(publicErrorFor(r.failure.err, public).Message)}
	published.failure = &failure{err: r.failure.err}
	return &published, nil
}

// publicErrorFor returns the Error to send for err, given the result of PublicError for it.
func publicErrorFor(err, public error) *Error {
	if public == nil {
		public = &PrivateError{Err: err}
	}
	sent := *asError(public)
	sent.Cause = err
	return &sent
}

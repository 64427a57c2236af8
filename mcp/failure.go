// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/jsonschema"
)

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

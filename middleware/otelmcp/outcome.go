// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"
	"errors"
	"strconv"

	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
)

// outcome is how an operation ended.
type outcome struct {
	kind    string // error.type, "" if it went well
	code    string // of the error that was sent, "" if there is none
	text    string // for the span's status
	reached bool   // there is something of the request's name
}

// panicked is the outcome of a handler that did not return: whoever recovers it
// answers with an internal error.
var panicked = outcome{kind: "panic", code: strconv.Itoa(mcp.CodeInternalError), reached: true}

func outcomeOf(ctx context.Context, kind trace.SpanKind, res mcp.Result, err error) outcome {
	coded, isCoded := errors.AsType[*mcp.Error](err)
	switch {
	case err == nil:
		return outcome{kind: resultKind(res), reached: true}
	case ctx.Err() != nil:
		return outcome{kind: contextKind(ctx.Err())}
	case isCoded:
		code := strconv.Itoa(coded.Code)
		return outcome{kind: code, code: code, text: coded.Message, reached: coded.Code == mcp.CodeInternalError}
	case kind == trace.SpanKindClient:
		return outcome{kind: wireError(err)} // its text may have parts of a URL
	}
	code := strconv.Itoa(mcp.CodeOf(err))
	return outcome{kind: code, code: code, text: err.Error(), reached: true}
}

func resultKind(res mcp.Result) string {
	if r, ok := res.(*mcp.CallToolResult); ok && r != nil && r.IsError {
		return "tool_error"
	}
	return ""
}

func contextKind(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return "cancelled"
}

// wireError is the error.type of an error that no server sent, "" for nil.
func wireError(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, mcp.ErrUnauthorized):
		return "unauthorized"
	case errors.Is(err, mcp.ErrSessionLost):
		return "session_lost"
	case errors.Is(err, mcp.ErrNotUnderstood):
		return "not_understood"
	case errors.Is(err, mcp.ErrClosed):
		return "closed"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return contextKind(err)
	}
	return other
}

// folded is o with none but known codes, which a peer can choose freely.
func (o outcome) folded() outcome {
	if o.code == "" {
		return o
	}
	code, err := strconv.Atoi(o.code)
	if err == nil && knownCode(code) {
		return o
	}
	return outcome{kind: other, code: other}
}

func knownCode(code int) bool {
	switch code {
	case mcp.CodeParseError, mcp.CodeInvalidRequest, mcp.CodeMethodNotFound, mcp.CodeInvalidParams, mcp.CodeInternalError,
		mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion, mcp.CodeURLElicitationRequired,
		mcp.CodeLegacyResourceNotFound, mcp.CodeLegacyUserRejectedRequest,
		mcp.CodeInsufficientScope, mcp.CodeTimeout, mcp.CodeTooLarge, mcp.CodeRateLimited:
		return true
	}
	return false
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"context"
	"errors"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// An outcome describes how a request ended. The kinds are the same as in package middleware.
type outcome struct {
	kind      string
	code      int
	err       error // why it failed; nil if unknown
	isFailure bool
}

func outcomeOf(ctx context.Context, res mcp.Result, err error, panicked bool) outcome {
	tool, _ := res.(*mcp.CallToolResult)
	_, asks := res.(*mcp.InputRequired)
	failed := err != nil || tool != nil && tool.IsError
	switch {
	case panicked:
		return outcome{kind: "panic", code: mcp.CodeInternalError, err: errors.New("the handler panicked; the log has the stack"), isFailure: true}
	case failed && ctx.Err() != nil:
		return outcome{kind: "cancelled", err: context.Cause(ctx)}
	case err != nil:
		return outcome{kind: "error", code: mcp.CodeOf(err), err: err, isFailure: true}
	case failed:
		return failedTool(tool)
	case asks:
		return outcome{kind: "input_required"}
	}
	return outcome{kind: "ok"}
}

func failedTool(res *mcp.CallToolResult) outcome {
	err := res.Err()
	if _, invalid := errors.AsType[*mcp.ArgumentsError](err); invalid {
		return outcome{kind: "invalid_arguments", err: err, isFailure: true}
	}
	return outcome{kind: "isError", err: err, isFailure: true}
}

// text returns the text of the error and its causes, or "" if there is none. Unless values are
// shown, the text for invalid arguments contains only their places.
func (o outcome) text(values bool) string {
	if o.err == nil {
		return ""
	}
	if invalid, ok := errors.AsType[*mcp.ArgumentsError](o.err); ok && !values {
		return clip("invalid arguments: "+strings.Join(invalid.Places(), ", "), maxError)
	}
	return clip(withCauses(o.err), maxError)
}

// withCauses returns the text of an error followed by the texts of wrapped errors that it does
// not contain, which are not sent to peers.
func withCauses(err error) string {
	text := err.Error()
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
		if more := cause.Error(); !strings.Contains(text, more) {
			text += ": " + more
		}
	}
	return text
}

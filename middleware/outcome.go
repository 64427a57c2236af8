// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"log/slog"

	"github.com/go-psi/psi/mcp"
)

// watched serves a request and tells how it ended, also if that is in a panic, which
// goes on to whoever recovers it.
func watched(ctx context.Context, next mcp.Handler, req *mcp.Request, tell func(outcome)) (res mcp.Result, err error) {
	returned := false
	defer func() {
		o := outcome{kind: panicked, level: slog.LevelError}
		if returned {
			o = outcomeOf(ctx, res, err)
		}
		tell(o)
	}()
	res, err = next.ServeMCP(ctx, req)
	returned = true
	return res, err
}

// panicked is the kind of an outcome that is none: whoever recovers it answers with an
// internal error.
const panicked = "panic"

// outcome is what the operator may know of how a request ended.
type outcome struct {
	kind  string
	level slog.Level
	code  int   // 0 unless it is an error
	err   error // that the operator should see
}

func outcomeOf(ctx context.Context, res mcp.Result, err error) outcome {
	switch {
	case err != nil && ctx.Err() != nil:
		return outcome{kind: "cancelled"}
	case mcp.CodeOf(err) == mcp.CodeInternalError:
		return outcome{kind: "error", level: slog.LevelError, code: mcp.CodeInternalError, err: err}
	case err != nil:
		return outcome{kind: "error", code: mcp.CodeOf(err)}
	}
	switch r := res.(type) {
	case *mcp.InputRequired:
		return outcome{kind: "input_required"}
	case *mcp.CallToolResult:
		if r != nil && r.IsError {
			return outcome{kind: "isError"}
		}
	}
	return outcome{kind: "ok"}
}

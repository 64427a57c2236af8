// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// observe serves a request and passes its outcome to report, even if the handler panics.
// The panic then continues.
func observe(ctx context.Context, next mcp.Handler, req *mcp.Request, report func(outcome)) (res mcp.Result, err error) {
	returned := false
	defer func() {
		o := outcome{kind: panicked, level: slog.LevelError}
		if returned {
			o = outcomeOf(ctx, res, err)
			tool, _ := res.(*mcp.CallToolResult)
			o.mended = len(tool.Mended())
		}
		report(o)
	}()
	res, err = next.ServeMCP(ctx, req)
	returned = true
	return res, err
}

// panicked is the kind of outcome if the handler panicked. The caller gets an internal
// error.
const panicked = "panic"

// An outcome describes to the operator how a request ended.
type outcome struct {
	kind     string
	level    slog.Level
	code     int   // code of the error if kind is "error"; otherwise 0
	err      error // why the request failed; nil if unknown
	isLogged bool  // whether err may be logged
	mended   int   // number of arguments changed to fit the schema
}

func outcomeOf(ctx context.Context, res mcp.Result, err error) outcome {
	tool, _ := res.(*mcp.CallToolResult)
	failed := err != nil || tool != nil && tool.IsError
	switch {
	case failed && ctx.Err() != nil:
		return outcome{kind: "cancelled", err: context.Cause(ctx)}
	case mcp.CodeOf(err) == mcp.CodeInternalError:
		return outcome{kind: "error", level: slog.LevelError, code: mcp.CodeInternalError, err: err, isLogged: true}
	case err != nil:
		return outcome{kind: "error", code: mcp.CodeOf(err), err: err}
	case failed:
		return failedTool(tool.Err())
	}
	if _, asks := res.(*mcp.InputRequired); asks {
		return outcome{kind: "input_required"}
	}
	return outcome{kind: "ok"}
}

// failedTool returns the outcome of a tool that failed with err, which is nil if the reason
// is unknown.
func failedTool(err error) outcome {
	_, invalid := errors.AsType[*mcp.ArgumentsError](err)
	switch {
	case invalid:
		return outcome{kind: "invalid_arguments", err: err, isLogged: true}
	case err == nil:
		return outcome{kind: "isError"}
	}
	return outcome{kind: "isError", level: slog.LevelWarn, err: err, isLogged: true}
}

// withoutArguments returns an error that is safe to log. For invalid arguments, it reports
// where they are invalid but not their values.
func withoutArguments(err error) error {
	invalid, ok := errors.AsType[*mcp.ArgumentsError](err)
	switch {
	case !ok:
		return err
	case len(invalid.Places()) == 0:
		return errors.New("the arguments could not be decoded or validated")
	}
	return errors.New(strings.Join(invalid.Places(), ", "))
}

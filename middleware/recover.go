// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp"
)

// Recover turns a panic of a handler into an internal error. It logs the panic and its
// stack to l, or to [slog.Default] if l is nil; the client sees neither. A panic with
// [mcp.ErrAbortHandler] is not logged and makes the transport abandon the request.
//
// All transports recover panics. Use Recover to recover further inside, so that outer
// middleware sees an error; to log panics to another logger; or to call a handler without a
// transport. The transport does not log the panic again.
func Recover(l *slog.Logger) mcp.Middleware {
	if l == nil {
		l = slog.Default()
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (res mcp.Result, err error) {
			defer func() {
				if v := recover(); v != nil {
					res, err = nil, recovered(ctx, l, req, v)
				}
			}()
			return next.ServeMCP(ctx, req)
		})
	}
}

// recovered logs a panic and returns the error that replaces it.
func recovered(ctx context.Context, l *slog.Logger, req *mcp.Request, v any) error {
	if v == mcp.ErrAbortHandler { //nolint:errorlint // net/http compares the value, too
		return &mcp.Error{Code: mcp.CodeInternalError, Message: "the request was aborted", Cause: mcp.ErrAbortHandler}
	}
	stack := debug.Stack()
	if p, ok := v.(*async.PanicError); ok {
		v, stack = p.Value, p.Stack
	}
	attrs := append(identity(ctx, req), slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(stack)))
	l.LogAttrs(ctx, slog.LevelError, "mcp: handler panicked", attrs...)
	return &mcp.Error{Code: mcp.CodeInternalError, Message: "internal error", Cause: fmt.Errorf("panic: %v", v)}
}

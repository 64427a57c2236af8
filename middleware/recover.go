// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/go-psi/psi/internal/flight"
	"github.com/go-psi/psi/mcp"
)

// Recover makes an internal error of a panic, for the request whose handler
// panicked. The panic and its stack are logged to l, or to [slog.Default] if l is
// nil; the peer is told neither. A panic with [mcp.ErrAbortHandler] is not logged,
// and gives the request up in the way of the transport.
//
// All transports do this by themselves. Recover is for those who want it further
// inside: so that the middleware outside of it sees an error where there was a
// panic, that a panic goes to a logger of its own, or that a handler can be called
// where there is no transport. What it has recovered is not logged again.
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

// recovered logs a panic and is the error that it becomes.
func recovered(ctx context.Context, l *slog.Logger, req *mcp.Request, v any) error {
	if v == mcp.ErrAbortHandler { //nolint:errorlint // net/http compares the value, too
		return &mcp.Error{Code: mcp.CodeInternalError, Message: "the request was aborted", Cause: mcp.ErrAbortHandler}
	}
	stack := debug.Stack()
	if p, ok := v.(*flight.PanicError); ok {
		v, stack = p.Value, p.Stack
	}
	attrs := append(identity(ctx, req), slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(stack)))
	l.LogAttrs(ctx, slog.LevelError, "mcp: handler panicked", attrs...)
	return &mcp.Error{Code: mcp.CodeInternalError, Message: "internal error", Cause: fmt.Errorf("panic: %v", v)}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/mcp"
)

// Timeout cancels the context of a handler after d and waits for the handler to return. If
// the handler then returns an error or a failed tool result, it is replaced by an error
// with [mcp.CodeTimeout]. A successful result is returned even if it is late.
//
// Subscriptions ([mcp.MethodListen]) are long-lived and have no deadline. On a client,
// Timeout limits each request; see also [mcp.ClientOptions].CallTimeout, which progress
// extends. Timeout panics if d is not positive.
func Timeout(d time.Duration) mcp.Middleware {
	mustBePositive("Timeout: the time", d)
	cause := &deadline{d}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				return next.ServeMCP(ctx, req)
			}
			ctx, cancel := context.WithTimeoutCause(ctx, d, cause)
			defer cancel()
			res, err := next.ServeMCP(ctx, req)
			return cause.replaceLate(ctx, res, err)
		})
	}
}

// A deadline is the cancellation cause of contexts whose deadline was set by a Timeout. Its
// address distinguishes it from other Timeouts.
type deadline struct{ after time.Duration }

func (d *deadline) Error() string { return fmt.Sprintf("middleware: not done within %v", d.after) }

// Is makes the error match [context.DeadlineExceeded].
func (d *deadline) Is(target error) bool { return target == context.DeadlineExceeded }

// timedOut returns the error for the client.
func (d *deadline) timedOut() error {
	return &mcp.Error{Code: mcp.CodeTimeout, Message: fmt.Sprintf("the request took longer than %v", d.after), Cause: d}
}

// replaceLate replaces a failure after the deadline by the error for the client.
func (d *deadline) replaceLate(ctx context.Context, res mcp.Result, err error) (mcp.Result, error) {
	tool, _ := res.(*mcp.CallToolResult)
	failed := err != nil || tool != nil && tool.IsError
	if failed && errors.Is(context.Cause(ctx), d) { // not the deadline of an outer Timeout
		return nil, d.timedOut()
	}
	return res, err
}

// mustBePositive panics if the argument of a constructor is not positive.
func mustBePositive[N ~int | ~int64](what string, n N) {
	if n <= 0 {
		panic(fmt.Sprintf("middleware.%s must be positive, not %v", what, n))
	}
}

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

// Timeout gives handlers a deadline: after d, their context is done. It waits for
// them to see that and return. What they then return as an error, or as the failure
// of a tool, becomes an error with [mcp.CodeTimeout]; a result that is none is kept,
// late as it is.
//
// Subscriptions ([mcp.MethodListen]) are meant to last and have no deadline. On a
// client it bounds each request; see also [mcp.ClientOptions].CallTimeout, which
// progress extends. Timeout panics if d is not positive.
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
			return cause.judge(ctx, res, err)
		})
	}
}

// deadline is the cause of the contexts whose deadline a middleware set. Its
// address tells it from those of others.
type deadline struct{ after time.Duration }

func (d *deadline) Error() string { return fmt.Sprintf("middleware: not done within %v", d.after) }

// Is makes it a [context.DeadlineExceeded].
func (d *deadline) Is(target error) bool { return target == context.DeadlineExceeded }

// timedOut is what the peer is told.
func (d *deadline) timedOut() error {
	return &mcp.Error{Code: mcp.CodeTimeout, Message: fmt.Sprintf("the request took longer than %v", d.after), Cause: d}
}

// judge replaces a failure that came after the deadline.
func (d *deadline) judge(ctx context.Context, res mcp.Result, err error) (mcp.Result, error) {
	tool, _ := res.(*mcp.CallToolResult)
	failed := err != nil || tool != nil && tool.IsError
	if failed && errors.Is(context.Cause(ctx), d) { // this deadline, not one outside
		return nil, d.timedOut()
	}
	return res, err
}

// mustBePositive panics about a mistake in the construction of a middleware.
func mustBePositive[N ~int | ~int64](what string, n N) {
	if n <= 0 {
		panic(fmt.Sprintf("middleware.%s must be positive, not %v", what, n))
	}
}

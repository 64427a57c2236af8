// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/go-psi/psi/mcp"
)

// ownRequest is a copy of req for a handler on a goroutine of its own, which may
// outlive req and with it the bytes that its params are in.
func ownRequest(req *mcp.Request) (*mcp.Request, error) {
	if req.Params() == nil {
		return req.Clone(), nil
	}
	return req.WithParams(slices.Clone(req.Params()))
}

// A crossing is a panic on its way from the goroutine of a handler to that of its
// caller. It keeps the stack on which it happened.
type crossing struct {
	value any
	stack []byte
}

// String is for those who recover it and do not know it.
func (c *crossing) String() string {
	return fmt.Sprintf("%v\n\non another goroutine:\n%s", c.value, c.stack)
}

// ended is how a handler ended that ran on a goroutine of its own.
type ended struct {
	res      mcp.Result
	err      error
	panicked any // nil if it did not
}

// serveApart calls next on the running goroutine for a caller on another one. How
// it ended is in e also if the handler ends the goroutine.
func serveApart(ctx context.Context, next mcp.Handler, req *mcp.Request, e *ended) {
	e.err = mcp.Errorf(mcp.CodeInternalError, "the handler of %s ended its goroutine", clipped(req.Method))
	defer func() {
		v := recover()
		if v != nil && v != mcp.ErrAbortHandler { //nolint:errorlint // net/http compares the value, too
			v = &crossing{v, debug.Stack()}
		}
		e.panicked = v
	}()
	e.res, e.err = next.ServeMCP(ctx, req)
}

// outcome is that of the handler, on the caller's goroutine: it panics if the
// handler did.
func (e ended) outcome() (mcp.Result, error) {
	if e.panicked != nil {
		panic(e.panicked)
	}
	return e.res, e.err
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"slices"
)

// A Handler responds to MCP requests and receives MCP notifications.
//
// ServeMCP returns either a result or an error. An error that is or wraps an [*Error] is
// sent to the peer with its code, message and data; any other error becomes an internal
// error (-32603) whose message is the text of the error, or what a [*PrivateError] in it
// has for peers. For a notification, both are ignored.
//
// A handler may be called by several goroutines at once. It must not use ctx or req after
// it has returned, and must not change req: use [Request.WithParams] or [Request.Clone] to
// pass on a changed request.
//
// ctx is done when the request is cancelled. If the peer cancelled it, the cause is a
// [*CancelError].
type Handler interface {
	ServeMCP(ctx context.Context, req *Request) (Result, error)
}

// HandlerFunc is an adapter that allows a function to be used as a Handler.
type HandlerFunc func(ctx context.Context, req *Request) (Result, error)

// ServeMCP calls f.
func (f HandlerFunc) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	return f(ctx, req)
}

// Middleware wraps a Handler in another one. It can wrap a whole [Mux], one tool, or the
// outgoing calls of a client.
type Middleware func(Handler) Handler

// Chain returns h wrapped in mw, outermost first. It panics if a middleware is nil.
func Chain(h Handler, mw ...Middleware) Handler {
	mustBeMiddleware("Chain", mw)
	for _, m := range slices.Backward(mw) {
		h = m(h)
	}
	return h
}

// A Describer is a Handler that describes its tool, prompt or resource. A [Mux] lists the
// registered handlers that are Describers; others can be called but are not listed.
type Describer interface {
	// Describe returns the item of tools/list and the other lists: a [*Tool], a [*Prompt]
	// or a [*Resource]. It is called once, at registration.
	Describe() Description
}

// Description is a [*Tool], a [*Prompt] or a [*Resource].
type Description interface{ description() }

func (*Tool) description()     {}
func (*Prompt) description()   {}
func (*Resource) description() {}

// Describe returns h with a description, for a handler without one such as a
// [HandlerFunc].
func Describe(h Handler, d Description) Handler {
	mustBeHandler("Describe", h)
	return described{h, d}
}

type described struct {
	Handler
	d Description
}

func (d described) Describe() Description { return d.d }

func descriptionOf(h Handler) Description {
	if d, ok := h.(Describer); ok {
		return d.Describe()
	}
	return nil
}

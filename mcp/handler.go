// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"slices"
)

// A Handler responds to an MCP request or takes an MCP notification.
//
// ServeMCP returns exactly one of a result and an error. An error that is, or
// wraps, an [*Error] reaches the peer with its code, message and data; any other
// error becomes an internal error (-32603) whose message is the error's text.
// For a notification both are dropped.
//
// A handler may be called by many goroutines at once. It must not use ctx or
// req after it has returned, and must not change req: to pass on something
// else, it makes a copy with [Request.WithParams] or [Request.Clone].
//
// ctx is done when the request is cancelled, with a [*CancelError] as its cause
// where the peer cancelled it.
type Handler interface {
	ServeMCP(ctx context.Context, req *Request) (Result, error)
}

// HandlerFunc makes a Handler of a function.
type HandlerFunc func(ctx context.Context, req *Request) (Result, error)

// ServeMCP calls f.
func (f HandlerFunc) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	return f(ctx, req)
}

// Middleware wraps a Handler in another. It serves every direction: around a
// whole [Mux], around one tool, around a client's outgoing calls.
type Middleware func(Handler) Handler

// Chain wraps h in mw, the first of which is outermost.
func Chain(h Handler, mw ...Middleware) Handler {
	for _, m := range slices.Backward(mw) {
		h = m(h)
	}
	return h
}

// A Describer is a Handler that describes what it serves. What is registered on
// a [Mux] and describes itself is listed; what does not can be called all the
// same.
type Describer interface {
	// Describe returns what tools/list and its like show: a [*Tool], a
	// [*Prompt] or a [*Resource]. It is called once, at registration.
	Describe() Description
}

// Description is a [*Tool], a [*Prompt] or a [*Resource].
type Description interface{ description() }

func (*Tool) description()     {}
func (*Prompt) description()   {}
func (*Resource) description() {}

// Describe attaches a description to a handler that has none, such as a
// [HandlerFunc].
func Describe(h Handler, d Description) Handler { return described{h, d} }

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

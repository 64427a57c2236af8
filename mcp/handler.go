// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"slices"
	"time"
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
	if f == nil {
		panic("mcp: the HandlerFunc is nil")
	}
	return f(ctx, req)
}

// Middleware wraps a Handler in another one. It can wrap a whole [Mux], one tool, or the
// outgoing calls of a client. Around one tool, prompt or resource, use [Mux.With] or
// [Chain], or make the middleware with [NewMiddleware]. Otherwise, called directly, it
// returns a handler that hides what it wraps: the mux does not list it, and logs a warning.
type Middleware func(Handler) Handler

// NewMiddleware returns a Middleware that wraps handlers with wrap and does not hide what
// they are: registering or mounting mw(h) on a [Mux] is registering or mounting h with
// [Mux.With](mw), so that it is listed, completed and may ask. Wrap is called for each handler,
// and again if the result is registered or mounted.
func NewMiddleware(wrap func(next Handler) Handler) Middleware {
	if wrap == nil {
		panic("mcp: NewMiddleware: the function is nil")
	}
	return func(next Handler) Handler { return &wrapped{wrap(next), next, wrap} }
}

// wrapped is a handler in a middleware that NewMiddleware made.
type wrapped struct {
	Handler
	next Handler
	wrap Middleware
}

// unwrap returns the handler in h and the middleware around it, outermost first.
func unwrap(h Handler) (Handler, []Middleware) {
	var around []Middleware
	for {
		w, ok := h.(*wrapped)
		if !ok {
			return h, around
		}
		h, around = w.next, append(around, w.wrap)
	}
}

// Chain returns h wrapped in mw, outermost first. No middleware in mw hides what h is:
// registering the result is registering h with [Mux.With](mw...), as if each had been made by
// [NewMiddleware]. Chain panics if a middleware is nil.
func Chain(h Handler, mw ...Middleware) Handler {
	mustBeMiddleware("Chain", mw)
	for _, m := range slices.Backward(mw) {
		h = wrapVisibly(h, m)
	}
	return h
}

// wrapVisibly returns m(h), as a handler through which a registration sees h. One that
// describes itself stands for itself.
func wrapVisibly(h Handler, m Middleware) Handler {
	outer := m(h)
	switch outer.(type) {
	case *wrapped, Describer:
		return outer
	}
	return &wrapped{outer, h, m}
}

// chain is Chain for a handler that is served and not registered.
func chain(h Handler, mw []Middleware) Handler {
	return stack(h, mw).Handler
}

// stacked is a handler in its middleware.
type stacked struct {
	Handler
	around []Middleware // outermost first; those that NewMiddleware made as what it was given
}

// stack is chain, and remembers the middleware.
func stack(h Handler, mw []Middleware) *stacked {
	mustBeMiddleware("Chain", mw)
	around := slices.Clone(mw)
	for i, m := range slices.Backward(mw) {
		h = m(h)
		if w, ok := h.(*wrapped); ok {
			h, around[i] = w.Handler, w.wrap
		}
	}
	return &stacked{h, around}
}

// A Describer is a Handler that describes its tool, prompt or resource. A [Mux] lists the
// registered handlers that are Describers; others can be called but are not listed, which
// the mux logs.
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
// [HandlerFunc]. A nil description says that h is not to be listed on purpose.
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

// A Result is the result of a request: a pointer to one of the result structs of this
// package, or, for custom methods, to any struct that embeds [ResultBase]. A Result must
// not be changed after a handler has returned it, because it may be shared.
type Result interface{ base() *ResultBase }

// ResultBase holds the members that every result has.
type ResultBase struct {
	// ResultType is left empty by handlers; it is then sent as "complete".
	ResultType string `json:"resultType,omitempty"`
	Meta       Meta   `json:"_meta,omitempty"`
	Extra      Extra  `json:",embed"`
}

func (b *ResultBase) base() *ResultBase { return b }

// The result types of the core protocol.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
)

// EmptyResult is a result without members of its own.
type EmptyResult struct{ ResultBase }

// Cacheable holds cache hints: how long, and for which callers, a client may keep a result
// (server/utilities/caching).
type Cacheable struct {
	// TTLMs is the time in milliseconds that the result stays fresh. Nil means unspecified,
	// and is sent as 0: do not keep it. More than 2^53-1 is sent as that.
	TTLMs *int64 `json:"ttlMs,omitzero"`
	// CacheScope is "public" or "private". Empty is sent as "private".
	CacheScope string `json:"cacheScope,omitempty"`
}

// The cache scopes.
const (
	CachePublic  = "public"  // the same for every caller; shared caches may keep it
	CachePrivate = "private" // depends on the caller; must not be shared with others
)

// CacheFor returns cache hints with ttl, rounded down to milliseconds.
func CacheFor(ttl time.Duration, scope string) Cacheable {
	ms := max(ttl.Milliseconds(), 0)
	return Cacheable{TTLMs: &ms, CacheScope: scope}
}

func (c *Cacheable) hints() *Cacheable { return c }

// cacheable is a result that carries cache hints.
type cacheable interface {
	Result
	hints() *Cacheable
}

// Page holds the cursor of a list result.
type Page struct {
	// NextCursor is the cursor of the next page; nil means that this is the last page. The
	// empty string is a cursor.
	NextCursor *string `json:"nextCursor,omitzero"`
}

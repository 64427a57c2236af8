// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"
)

// A Handler responds to MCP requests and receives MCP notifications.
//
// ServeMCP returns either a result or an error. An error that is or wraps an [*Error] is
// sent to the peer with its code, message and data; any other error becomes an internal
// error (-32603) whose message is the text of the error, or the Public text of a wrapped
// [*PrivateError]. For a notification, both are ignored.
//
// ServeMCP may be called concurrently. It must not use ctx or req after it has returned, and
// must not modify req: use [Request.WithParams] or [Request.Clone] to pass on a modified
// request.
//
// ctx is cancelled when the request is cancelled. If the peer cancelled the request, the
// cause is a [*CancelError].
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

// Middleware wraps a Handler in another Handler. It can wrap a whole [Mux], one tool, or the
// outgoing calls of a client. To wrap one tool, prompt or resource, use [Mux.With] or
// [Chain]: if middleware is called directly, the handler that it returns hides the wrapped
// one. The mux then does not list it, and logs a warning.
type Middleware func(Handler) Handler

// Chain returns h wrapped in mw, outermost first. The middleware does not hide h:
// registering or mounting the result on a [Mux] is equivalent to registering or mounting h
// with [Mux.With](mw...), so that h is listed and completed and may ask questions. The
// middleware is then called once more. Chain panics if a middleware is nil.
func Chain(h Handler, mw ...Middleware) Handler {
	mustBeMiddleware("Chain", mw)
	if len(mw) == 0 {
		return h
	}
	return &chained{wrap(h, mw), h, slices.Clone(mw)}
}

// chained is a handler wrapped in middleware by Chain.
type chained struct {
	Handler
	next   Handler
	around []Middleware // outermost first
}

// unwrap returns the innermost handler of h and its middleware, outermost first.
func unwrap(h Handler) (Handler, []Middleware) {
	var around []Middleware
	for {
		c, ok := h.(*chained)
		if !ok {
			return h, around
		}
		h, around = c.next, append(around, c.around...)
	}
}

// wrap returns h wrapped in mw, outermost first.
func wrap(h Handler, mw []Middleware) Handler {
	for _, m := range slices.Backward(mw) {
		h = m(h)
	}
	return h
}

// A Describer is a Handler that describes its tool, prompt or resource. A [Mux] lists the
// registered handlers that are Describers. Other handlers can be called but are not listed;
// the mux logs them.
type Describer interface {
	// Describe returns the list item: a [*Tool], a [*Prompt] or a [*Resource]. It is called
	// once, at registration.
	Describe() Description
}

// Description is a [*Tool], a [*Prompt] or a [*Resource].
type Description interface{ description() }

func (*Tool) description()     {}
func (*Prompt) description()   {}
func (*Resource) description() {}

// WithDescription returns h with a description, for handlers without one, such as a [HandlerFunc].
// A nil description means that h is deliberately not listed.
func WithDescription(h Handler, d Description) Handler {
	mustBeHandler("WithDescription", h)
	return described{h, d}
}

type described struct {
	Handler
	d Description
}

func (d described) Describe() Description { return d.d }

// DescriptionOf returns the description of a handler, or nil if it has none. It must not be
// modified.
func DescriptionOf(h Handler) Description {
	if d, ok := h.(Describer); ok {
		return d.Describe()
	}
	return nil
}

// A Result is the result of a request: a pointer to one of the result structs of this
// package, or, for custom methods, to any struct that embeds [ResultBase]. A Result must
// not be modified after a handler has returned it, because it may be shared.
type Result interface{ base() *ResultBase }

// ResultBase holds the members that are common to all results.
type ResultBase struct {
	// ResultType is left empty by handlers and then sent as "complete".
	ResultType string `json:"resultType,omitempty"`
	Meta       Meta   `json:"_meta,omitempty"`
	Extra      Extra  `json:",inline,embed"`
}

func (b *ResultBase) base() *ResultBase { return b }

// ResultMeta returns the _meta object of a result of any type. It must not be modified. It is
// nil if there is none, or if res is nil.
func ResultMeta(res Result) Meta {
	if res == nil {
		return nil
	}
	return res.base().Meta
}

// WithResultMeta returns a copy of a result of any type in whose _meta object v is the value
// for key. It panics if res is nil or v cannot be encoded.
func WithResultMeta(res Result, key string, v any) Result {
	if res == nil {
		panic("mcp: WithResultMeta: the result is nil")
	}
	original := reflect.ValueOf(res).Elem()
	copied := reflect.New(original.Type())
	copied.Elem().Set(original)
	with := copied.Interface().(Result)
	base := with.base()
	base.Meta = maps.Clone(base.Meta)
	base.Meta.Set(key, v)
	return with
}

// The result types of the core protocol.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
)

// EmptyResult is a result that has only the members of [ResultBase].
type EmptyResult struct{ ResultBase }

// Cacheable holds cache hints: how long, and for which callers, a client may cache a result
// (server/utilities/caching).
type Cacheable struct {
	// TTLMs is the time in milliseconds for which the result is fresh. Nil means unspecified
	// and is sent as 0, which disables caching. Values above 2^53-1 are sent as 2^53-1.
	TTLMs *int64 `json:"ttlMs,omitzero"`
	// CacheScope is "public" or "private". Empty is sent as "private".
	CacheScope string `json:"cacheScope,omitempty"`
}

// The cache scopes.
const (
	CachePublic  = "public"  // the same for every caller; shared caches may store it
	CachePrivate = "private" // depends on the caller; must not be shared with other callers
)

// CacheFor returns cache hints with ttl, rounded down to milliseconds. A negative ttl means 0.
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
	// NextCursor is the cursor of the next page, or nil on the last page. The empty string is
	// a valid cursor.
	NextCursor *string `json:"nextCursor,omitzero"`
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
)

type (
	requestKey   struct{}
	refusalKey   struct{}
	principalKey struct{}
)

// RequestFrom is the HTTP request that carried the MCP request of ctx, or nil. Its
// body has been read.
func RequestFrom(ctx context.Context) *http.Request {
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	return r
}

// WithPrincipal returns r with an authenticated caller, for authenticating
// middleware around a [Handler]: handlers find it in [mcp.Request.Principal], and
// sessions are bound to it.
func WithPrincipal(r *http.Request, p *mcp.Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
}

// PrincipalOf is the caller that [WithPrincipal] gave to r, or nil, for HTTP handlers
// beside those of MCP.
func PrincipalOf(r *http.Request) *mcp.Principal {
	p, _ := r.Context().Value(principalKey{}).(*mcp.Principal)
	return p
}

// atExpiry calls end when the authentication of the caller of r is over. It returns nil
// if that is never, or not known.
func atExpiry(r *http.Request, end func()) *time.Timer {
	p := PrincipalOf(r)
	if p == nil || p.Expiry.IsZero() {
		return nil
	}
	return time.AfterFunc(time.Until(p.Expiry), end)
}

// originOf is the origin of the messages that r carries.
func originOf(r *http.Request) mcp.Origin {
	return mcp.Origin{Principal: PrincipalOf(r), Header: r.Header}
}

// httpContext has the values of an HTTP request, and the request. It is never done: in
// the legacy era, a client that disconnects has not cancelled, and in the modern era
// the cause of what ends a call is one of MCP. See mcp's for why it is a type.
type httpContext struct{ request *http.Request }

func (c *httpContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (c *httpContext) Done() <-chan struct{}                   { return nil }
func (c *httpContext) Err() error                              { return nil }

func (c *httpContext) Value(key any) any {
	if key == (requestKey{}) {
		return c.request
	}
	return c.request.Context().Value(key)
}

// withRequest is the context of an HTTP request, with the request.
func withRequest(r *http.Request) context.Context {
	return context.WithValue(r.Context(), requestKey{}, r)
}

// requestContext is that of a request that is to be answered.
type requestContext struct {
	httpContext
	attached bool                  // it has the deadline of the HTTP request, of which its owner ends it
	stream   *stream               // of a legacy call; nil if it has none
	refusal  atomic.Pointer[error] // what the handler answered, if that was an error
}

// Deadline implements [context.Context].
func (c *requestContext) Deadline() (deadline time.Time, ok bool) {
	if !c.attached {
		return time.Time{}, false
	}
	return c.request.Context().Deadline()
}

func (c *requestContext) Value(key any) any {
	switch key {
	case refusalKey{}:
		return c
	case streamKey{}:
		return c.stream
	}
	return c.httpContext.Value(key)
}

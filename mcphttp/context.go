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

// httpContext carries the HTTP request; see mcp's for why it is a type.
type httpContext struct {
	context.Context
	request *http.Request
}

// detach makes it the context of what outlives the connection: in the legacy era, a
// client that disconnects has not cancelled.
func (c *httpContext) detach(r *http.Request) {
	c.Context, c.request = context.WithoutCancel(r.Context()), r
}

func (c *httpContext) Value(key any) any {
	if key == (requestKey{}) {
		return c.request
	}
	return c.Context.Value(key)
}

// requestContext is that of a request that is to be answered.
type requestContext struct {
	httpContext
	stream  *stream               // of a legacy call; nil if it has none
	refusal atomic.Pointer[error] // what the handler answered, if that was an error
}

func (c *requestContext) Value(key any) any {
	switch key {
	case requestKey{}:
		return c.request
	case refusalKey{}:
		return c
	case streamKey{}:
		return c.stream
	}
	return c.Context.Value(key)
}

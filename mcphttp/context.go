// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
)

type (
	valuesKey    struct{}
	principalKey struct{}
	challengeKey struct{}
)

// RequestFromContext returns the HTTP request that carried the MCP request of ctx. Its body
// has been read. It is nil if the MCP request came over another transport, such as stdio or
// [mcp.InProcess]: check for that before reading a field.
func RequestFromContext(ctx context.Context) *http.Request {
	if v := valuesFrom(ctx); v != nil {
		return v.http
	}
	return nil
}

// WithPrincipal returns r with an authenticated caller. It is for authenticating
// middleware around a [Handler]: MCP handlers find the caller in
// [mcp.Request.Principal], and sessions are bound to it.
func WithPrincipal(r *http.Request, p *mcp.Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
}

// PrincipalFromContext returns the caller that [WithPrincipal] stored in the context of
// an HTTP request, or nil. It is for HTTP handlers; MCP handlers use
// [mcp.Request.Principal].
func PrincipalFromContext(ctx context.Context) *mcp.Principal {
	p, _ := ctx.Value(principalKey{}).(*mcp.Principal)
	return p
}

// WithChallenge returns r with a function that makes the WWW-Authenticate header for a
// caller who lacks scopes that a handler needs ([mcp.ScopeError]). It is for
// authenticating middleware around a [Handler]. Without it, the header names the scopes
// only.
func WithChallenge(r *http.Request, challenge func(scopes []string) string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), challengeKey{}, challenge))
}

func principalOf(r *http.Request) *mcp.Principal { return PrincipalFromContext(r.Context()) }

// originOf returns the origin of the messages that r carries.
func originOf(r *http.Request) serving.Origin {
	return serving.Origin{Principal: principalOf(r), Header: r.Header}
}

// afterExpiry calls f in a goroutine of its own when the authentication of the caller of
// r expires, if that time is known. Calling stop prevents it.
func afterExpiry(r *http.Request, f func()) (stop func() bool) {
	p := principalOf(r)
	if p == nil || p.Expiry.IsZero() {
		return func() bool { return false }
	}
	return time.AfterFunc(time.Until(p.Expiry), f).Stop
}

// requestValues is what this package keeps in the context of an MCP request.
type requestValues struct {
	http   *http.Request
	stream *stream // of a legacy call; nil if it has none
}

func contextWithValues(parent context.Context, v *requestValues) context.Context {
	return context.WithValue(parent, valuesKey{}, v)
}

func valuesFrom(ctx context.Context) *requestValues {
	v, _ := ctx.Value(valuesKey{}).(*requestValues)
	return v
}

// serverContext is the context of a modern request before its client can cancel it. It
// ends with a context of the server, and has the values and the deadline of the HTTP
// request.
type serverContext struct {
	context.Context
	requestValues
}

// Deadline implements [context.Context].
func (c *serverContext) Deadline() (time.Time, bool) { return c.http.Context().Deadline() }

// Value implements [context.Context]. The server's context is asked first, because package
// context finds by a value what ends a context.
func (c *serverContext) Value(key any) any {
	if key == (valuesKey{}) {
		return &c.requestValues
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.http.Context().Value(key)
}

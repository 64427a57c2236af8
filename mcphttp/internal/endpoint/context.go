// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package endpoint

import (
	"context"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
)

type (
	valuesKey    struct{}
	principalKey struct{}
	challengeKey struct{}
)

// Values are the values in the context of an MCP request that describe its HTTP request.
type Values struct {
	HTTP *http.Request
	// Stream is the event stream of the response, or nil if the client cannot resume it.
	Stream interface {
		CloseConnection(ctx context.Context) error
	}
}

// WithValues returns a copy of parent that holds v.
func WithValues(parent context.Context, v *Values) context.Context {
	return context.WithValue(parent, valuesKey{}, v)
}

// ValuesFromContext returns the values of an MCP request, or nil if it came over another transport.
func ValuesFromContext(ctx context.Context) *Values {
	v, _ := ctx.Value(valuesKey{}).(*Values)
	return v
}

// DetachedContext returns a context with v and the values of r's context that is not
// cancelled when r ends. It sets v.HTTP.
func DetachedContext(r *http.Request, v *Values) context.Context {
	v.HTTP = r
	return WithValues(context.WithoutCancel(r.Context()), v)
}

// ServerContext is a context that is cancelled with a context of the server, and has the
// values and the deadline of the HTTP request.
type ServerContext struct {
	context.Context
	Values
}

// Deadline implements [context.Context].
func (c *ServerContext) Deadline() (time.Time, bool) { return c.HTTP.Context().Deadline() }

// Value implements [context.Context]. It consults the server's context first, because
// package context uses Value to find the parent that cancels a context.
func (c *ServerContext) Value(key any) any {
	if key == (valuesKey{}) {
		return &c.Values
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.HTTP.Context().Value(key)
}

// WithPrincipal returns a copy of parent, an HTTP request's context, that holds its caller.
func WithPrincipal(parent context.Context, p *mcp.Principal) context.Context {
	return context.WithValue(parent, principalKey{}, p)
}

// PrincipalFromContext returns the caller of an HTTP request, or nil if unauthenticated.
func PrincipalFromContext(ctx context.Context) *mcp.Principal {
	p, _ := ctx.Value(principalKey{}).(*mcp.Principal)
	return p
}

// PrincipalOf returns the caller of r, or nil if unauthenticated.
func PrincipalOf(r *http.Request) *mcp.Principal { return PrincipalFromContext(r.Context()) }

// OriginOf returns the origin of the messages that r carries.
func OriginOf(r *http.Request) server.Origin {
	return server.Origin{Principal: PrincipalOf(r), Header: r.Header, InSession: r.Header.Get(header.Session) != ""}
}

// AfterExpiry calls f in its own goroutine when the authentication of the caller of r
// expires, if that time is known. Calling stop prevents it.
func AfterExpiry(r *http.Request, f func()) (stop func() bool) {
	p := PrincipalOf(r)
	if p == nil || p.Expiry.IsZero() {
		return func() bool { return false }
	}
	return time.AfterFunc(time.Until(p.Expiry), f).Stop
}

// WithChallenge returns a copy of parent, an HTTP request's context, that holds a function
// returning the WWW-Authenticate header for a caller that lacks scopes.
func WithChallenge(parent context.Context, challenge func(scopes []string) string) context.Context {
	return context.WithValue(parent, challengeKey{}, challenge)
}

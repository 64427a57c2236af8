// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package endpoint

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

// Values are what the context of an MCP request knows of the HTTP request that carried it.
type Values struct {
	HTTP *http.Request
	// Stream is the event stream of the response, nil if it is not one that its client
	// can come back to.
	Stream interface {
		CloseConnection(ctx context.Context) error
	}
}

// WithValues returns a context that has v.
func WithValues(parent context.Context, v *Values) context.Context {
	return context.WithValue(parent, valuesKey{}, v)
}

// ValuesFromContext returns the values of an MCP request, nil if it came over another
// transport.
func ValuesFromContext(ctx context.Context) *Values {
	v, _ := ctx.Value(valuesKey{}).(*Values)
	return v
}

// DetachedContext returns a context with the values of an HTTP request that does not end
// with it. It sets v.HTTP.
func DetachedContext(r *http.Request, v *Values) context.Context {
	v.HTTP = r
	return WithValues(context.WithoutCancel(r.Context()), v)
}

// ServerContext is a context that ends with one of the server's, and has the values and the
// deadline of the HTTP request.
type ServerContext struct {
	context.Context
	Values
}

// Deadline implements [context.Context].
func (c *ServerContext) Deadline() (time.Time, bool) { return c.HTTP.Context().Deadline() }

// Value implements [context.Context]. The server's context is asked first, because package
// context finds by a value what ends a context.
func (c *ServerContext) Value(key any) any {
	if key == (valuesKey{}) {
		return &c.Values
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.HTTP.Context().Value(key)
}

// WithPrincipal returns a context of an HTTP request that has its caller.
func WithPrincipal(parent context.Context, p *mcp.Principal) context.Context {
	return context.WithValue(parent, principalKey{}, p)
}

// PrincipalFromContext returns the caller of an HTTP request, nil if it is not authenticated.
func PrincipalFromContext(ctx context.Context) *mcp.Principal {
	p, _ := ctx.Value(principalKey{}).(*mcp.Principal)
	return p
}

// PrincipalOf returns the caller of r, nil if it is not authenticated.
func PrincipalOf(r *http.Request) *mcp.Principal { return PrincipalFromContext(r.Context()) }

// OriginOf returns the origin of the messages that r carries.
func OriginOf(r *http.Request) serving.Origin {
	return serving.Origin{Principal: PrincipalOf(r), Header: r.Header}
}

// AfterExpiry calls f in a goroutine of its own when the authentication of the caller of
// r expires, if that time is known. Calling stop prevents it.
func AfterExpiry(r *http.Request, f func()) (stop func() bool) {
	p := PrincipalOf(r)
	if p == nil || p.Expiry.IsZero() {
		return func() bool { return false }
	}
	return time.AfterFunc(time.Until(p.Expiry), f).Stop
}

// WithChallenge returns a context of an HTTP request with a function that makes the
// WWW-Authenticate header for a caller who lacks scopes.
func WithChallenge(parent context.Context, challenge func(scopes []string) string) context.Context {
	return context.WithValue(parent, challengeKey{}, challenge)
}

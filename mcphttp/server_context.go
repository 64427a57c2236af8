// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/server"
)

type (
	valuesKey    struct{}
	principalKey struct{}
	challengeKey struct{}
)

// httpValues are the values in the context of an MCP request that describe its HTTP request.
type httpValues struct {
	HTTP *http.Request
	// Stream is the event stream of the response, or nil if the client cannot resume it.
	Stream interface {
		CloseConnection(ctx context.Context) error
	}
}

// withValues returns a copy of parent that holds v.
func withValues(parent context.Context, v *httpValues) context.Context {
	return context.WithValue(parent, valuesKey{}, v)
}

// valuesFromContext returns the values of an MCP request, or nil if it came over another transport.
func valuesFromContext(ctx context.Context) *httpValues {
	v, _ := ctx.Value(valuesKey{}).(*httpValues)
	return v
}

// detachedContext returns a context with v and the values of r's context that is not
// cancelled when r ends. It sets v.HTTP.
func detachedContext(r *http.Request, v *httpValues) context.Context {
	v.HTTP = r
	return withValues(context.WithoutCancel(r.Context()), v)
}

// serverContext is a context that is cancelled with a context of the server, and has the
// values and the deadline of the HTTP request.
type serverContext struct {
	context.Context
	httpValues
}

// Deadline implements [context.Context].
func (c *serverContext) Deadline() (time.Time, bool) { return c.HTTP.Context().Deadline() }

// Value implements [context.Context]. It consults the server's context first, because
// package context uses Value to find the parent that cancels a context.
func (c *serverContext) Value(key any) any {
	if key == (valuesKey{}) {
		return &c.httpValues
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.HTTP.Context().Value(key)
}

// originOf returns the origin of the messages that r carries.
func originOf(r *http.Request) server.Origin {
	return server.Origin{Principal: PrincipalOf(r), Header: r.Header, InSession: r.Header.Get(header.Session) != ""}
}

// afterExpiry calls f in its own goroutine when the authentication of the caller of r
// expires, if that time is known. Calling stop prevents it.
func afterExpiry(r *http.Request, f func()) (stop func() bool) {
	p := PrincipalOf(r)
	if p == nil || p.Expiry.IsZero() {
		return func() bool { return false }
	}
	return time.AfterFunc(time.Until(p.Expiry), f).Stop
}

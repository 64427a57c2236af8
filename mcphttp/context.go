// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"

	"github.com/go-psi/psi/mcp"
)

// RequestFromContext returns the HTTP request that carried the MCP request of ctx. Its body
// has been read. The result is nil if the MCP request came over another transport, such as
// stdio or [mcp.InProcess], so check it before reading a field.
func RequestFromContext(ctx context.Context) *http.Request {
	if v := valuesFromContext(ctx); v != nil {
		return v.HTTP
	}
	return nil
}

// WithPrincipal returns a shallow copy of r with p as its authenticated caller. It is for
// authenticating middleware around a [Handler]: MCP handlers find the caller in
// [mcp.Request.Principal], and sessions are bound to it.
func WithPrincipal(r *http.Request, p *mcp.Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
}

// PrincipalOf returns the caller that [WithPrincipal] stored in the context of an HTTP
// request, or nil. It is for HTTP handlers; MCP handlers use [mcp.PrincipalFromContext].
func PrincipalOf(r *http.Request) *mcp.Principal {
	p, _ := r.Context().Value(principalKey{}).(*mcp.Principal)
	return p
}

// WithChallenge returns a shallow copy of r with a function that returns the
// WWW-Authenticate header for a caller that lacks scopes required by a handler
// ([mcp.ScopeError]). It is for authenticating middleware around a [Handler]. Without it,
// the header names only the scopes.
func WithChallenge(r *http.Request, challenge func(scopes []string) string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), challengeKey{}, challenge))
}

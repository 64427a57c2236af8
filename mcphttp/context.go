// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
)

// RequestFromContext returns the HTTP request that carried the MCP request of ctx. Its body
// has been read. It is nil if the MCP request came over another transport, such as stdio or
// [mcp.InProcess]: check for that before reading a field.
func RequestFromContext(ctx context.Context) *http.Request {
	if v := endpoint.ValuesFromContext(ctx); v != nil {
		return v.HTTP
	}
	return nil
}

// WithPrincipal returns r with an authenticated caller. It is for authenticating
// middleware around a [Handler]: MCP handlers find the caller in
// [mcp.Request.Principal], and sessions are bound to it.
func WithPrincipal(r *http.Request, p *mcp.Principal) *http.Request {
	return r.WithContext(endpoint.WithPrincipal(r.Context(), p))
}

// PrincipalFromContext returns the caller that [WithPrincipal] stored in the context of
// an HTTP request, or nil. It is for HTTP handlers; MCP handlers use
// [mcp.Request.Principal].
func PrincipalFromContext(ctx context.Context) *mcp.Principal {
	return endpoint.PrincipalFromContext(ctx)
}

// WithChallenge returns r with a function that makes the WWW-Authenticate header for a
// caller who lacks scopes that a handler needs ([mcp.ScopeError]). It is for
// authenticating middleware around a [Handler]. Without it, the header names the scopes
// only.
func WithChallenge(r *http.Request, challenge func(scopes []string) string) *http.Request {
	return r.WithContext(endpoint.WithChallenge(r.Context(), challenge))
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"slices"

	"github.com/go-psi/psi/mcp"
)

// RequireScopes rejects callers that do not have all of the scopes, including
// unauthenticated ones, with [mcp.NewInsufficientScopeError], which names all of the scopes. Over
// HTTP this becomes a challenge that lets the client request them.
//
// With [mcp.Mux.With] it protects everything that the registration serves: calling the
// tool; getting the prompt and completing its arguments; reading the resource, completing
// the variables of its template, listing the resources that it matches, and subscribing
// to them. The item itself stays in lists; see [Visible]. Around a whole mux,
// RequireScopes also rejects callers that only want to connect. A nested RequireScopes
// does not add its scopes to the error of the outer one: list all scopes of an operation
// in one, or a client asks its user twice.
//
// RequireScopes panics if there are no scopes.
func RequireScopes(scopes ...string) mcp.Middleware {
	return RequireScopesBy(func(granted, required string) bool { return granted == required }, scopes...)
}

// RequireScopesBy is like [RequireScopes] for scopes that imply others, such as "notes"
// for "notes:read" and "notes:write": a scope is granted if implies returns true for any
// scope of the caller. Implies must return true for equal scopes. RequireScopesBy panics
// as RequireScopes does, and if implies is nil.
func RequireScopesBy(implies func(granted, required string) bool, scopes ...string) mcp.Middleware {
	if len(scopes) == 0 {
		panic("middleware.RequireScopes: there are no scopes to require")
	}
	if implies == nil {
		panic("middleware.RequireScopesBy: the function must not be nil")
	}
	required := slices.Clone(scopes)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if !hasScopes(principalOf(ctx, req), required, implies) {
				return nil, mcp.NewInsufficientScopeError(slices.Clone(required)...)
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

func hasScopes(p *mcp.Principal, required []string, implies func(granted, required string) bool) bool {
	if p == nil {
		return false
	}
	for _, scope := range required {
		found := false
		for _, granted := range p.Scopes { // no closure: this runs with every call
			found = found || implies(granted, scope)
		}
		if !found {
			return false
		}
	}
	return true
}

// principalOf returns the caller of a received request, or the principal for which a
// client sends it, or nil.
func principalOf(ctx context.Context, req *mcp.Request) *mcp.Principal {
	if req.Principal != nil {
		return req.Principal
	}
	return mcp.PrincipalFromContext(ctx)
}

// ownerOf returns a key for the caller. Unauthenticated callers share one key.
func ownerOf(ctx context.Context, req *mcp.Request) string {
	p := principalOf(ctx, req)
	if p == nil {
		return "anonymous"
	}
	return "of " + p.Issuer + "\x00" + p.Subject
}

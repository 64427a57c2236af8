// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"slices"

	"github.com/go-psi/psi/mcp"
)

// RequireScopes serves only callers who were granted all of the scopes, and refuses
// others, those whom nobody authenticated included, with [mcp.InsufficientScope],
// which names all of the scopes. Over HTTP that becomes a challenge by which a client
// can ask its user for more.
//
// Around what is registered by [mcp.Mux.With] it protects all that the registration
// serves: to call the tool; to get the prompt and to complete its arguments; to read the
// resource, to complete the variables of its template, to list the resources that it
// matches, and to subscribe to them. Its own name stays in the list, for everybody; see
// [Visible]. Around a whole mux RequireScopes also asks for the scopes of those who only
// want to connect. One inside of another does not add to what the other names: what an
// operation needs belongs into one, or a client asks its user twice.
//
// RequireScopes panics if there are no scopes, which would protect nothing.
func RequireScopes(scopes ...string) mcp.Middleware {
	return RequireScopesBy(func(granted, required string) bool { return granted == required }, scopes...)
}

// RequireScopesBy is [RequireScopes] where one scope can imply another, such as
// "notes" all of "notes:read" and "notes:write": a scope is granted if implies says
// so of any that the caller has. Implies is called with equal scopes, too. It panics as
// RequireScopes does, and if implies is nil.
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
			if !grantedAll(principalOf(ctx, req), required, implies) {
				return nil, mcp.InsufficientScope(slices.Clone(required)...)
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

func grantedAll(p *mcp.Principal, required []string, implies func(granted, required string) bool) bool {
	if p == nil {
		return false
	}
	for _, scope := range required {
		found := false
		for _, granted := range p.Scopes { // no closure: this is on the way of every call
			found = found || implies(granted, scope)
		}
		if !found {
			return false
		}
	}
	return true
}

// principalOf is the caller of a request that was received, or the one on whose
// behalf a client sends it, or nil.
func principalOf(ctx context.Context, req *mcp.Request) *mcp.Principal {
	if req.Principal != nil {
		return req.Principal
	}
	return mcp.PrincipalFrom(ctx)
}

// ownerOf is a text that tells callers apart. Those whom nobody authenticated are one.
func ownerOf(ctx context.Context, req *mcp.Request) string {
	p := principalOf(ctx, req)
	if p == nil {
		return "anonymous"
	}
	return "of " + p.Issuer + "\x00" + p.Subject
}

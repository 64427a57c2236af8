// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp"
)

// RequireScopes rejects callers that lack any of the scopes, including unauthenticated
// callers. The error is [mcp.NewInsufficientScopeError], which names all of the scopes.
// Over HTTP, it becomes a challenge that lets the client request them.
//
// With [mcp.Mux.With], RequireScopes protects everything that the registration serves:
// calling the tool; getting the prompt and completing its arguments; reading the resource,
// completing the variables of its template, listing the resources that the template
// matches, and subscribing to them. The item itself stays in lists, so that clients can
// request the missing scopes; [RequireScopesFunc] hides it. Around a whole mux,
// RequireScopes also rejects callers that only connect. A nested RequireScopes does not add
// its scopes to the error of the outer one: list all scopes of an operation in one
// RequireScopes, or clients ask their users twice.
//
// A scope that includes others, such as "notes" for "notes:read", is a matter of the caller,
// not of RequireScopes: see the field Expand of the Options of package auth.
//
// RequireScopes panics if there are no scopes, or if one cannot be a scope, such as several in
// one string.
func RequireScopes(scopes ...string) mcp.Middleware {
	if len(scopes) == 0 {
		panic("middleware.RequireScopes: there are no scopes to require")
	}
	for _, s := range scopes {
		if s == "" || strings.ContainsFunc(s, isNotOfScope) {
			panic(fmt.Sprintf("middleware.RequireScopes: %q is not a scope; pass each scope as a string of its own", s))
		}
	}
	required := slices.Clone(scopes)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if !hasScopes(principalOf(ctx, req), required) {
				return nil, mcp.NewInsufficientScopeError(slices.Clone(required)...)
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

// isNotOfScope reports whether a character cannot be part of a scope (RFC 6749, section 3.3). A
// comma can be, but is what separates scopes in many configurations, and in no scope.
func isNotOfScope(c rune) bool {
	return c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == ','
}

// RequireScopesFunc both protects and hides items. Callers that lack the scopes that
// required returns for an item do not see the item in lists. If they name it anyway, they
// are rejected as by [RequireScopes]. Use it around a whole mux, with the scopes of all
// items in one place:
//
//	mux.Use(middleware.RequireScopesFunc(func(kind mcp.Kind, name string) []string {
//		if kind == mcp.KindTool && strings.HasPrefix(name, "admin_") {
//			return []string{"admin"}
//		}
//		return nil // for every caller
//	}))
//
// Items are hidden and named as described in [Visible], except that the error for a hidden
// item reveals that it exists. required is called for every element of a list, and
// concurrently.
// RequireScopesFunc panics if required is nil.
func RequireScopesFunc(required func(kind mcp.Kind, name string) []string) mcp.Middleware {
	if required == nil {
		panic("middleware.RequireScopesFunc: the function must not be nil")
	}
	refusal := func(req *mcp.Request, kind mcp.Kind, name string) error {
		if kind == mcp.KindResource && isAmbiguous(uritemplate.Normal(name)) {
			return notFound(req, kind, name)
		}
		return mcp.NewInsufficientScopeError(scopesOfForms(required, kind, name)...)
	}
	return hide(func(ctx context.Context, req *mcp.Request) viewer {
		caller := principalOf(ctx, req)
		return viewer{visible: func(kind mcp.Kind, name string) bool {
			scopes := required(kind, name)
			return len(scopes) == 0 || hasScopes(caller, scopes)
		}, refusal: refusal}
	})
}

// scopesOfForms returns the scopes that all spellings of a name require together.
func scopesOfForms(required func(kind mcp.Kind, name string) []string, kind mcp.Kind, name string) []string {
	forms, n := [3]string{name}, 1
	if kind == mcp.KindResource {
		forms, n = spellings(name)
	}
	var scopes []string
	for _, form := range forms[:n] {
		for _, s := range required(kind, form) {
			if !slices.Contains(scopes, s) {
				scopes = append(scopes, s)
			}
		}
	}
	return scopes
}

func hasScopes(p *mcp.Principal, required []string) bool {
	for _, scope := range required {
		if !p.HasScope(scope) {
			return false
		}
	}
	return p != nil
}

// principalOf returns the caller of a received request, the principal on whose behalf a
// client sends it, or nil.
func principalOf(ctx context.Context, req *mcp.Request) *mcp.Principal {
	if req.Principal != nil {
		return req.Principal
	}
	return mcp.PrincipalFromContext(ctx)
}

// viewOf returns a key for the caller's view of the server, which may depend on the scopes
// of its token.
func viewOf(ctx context.Context, req *mcp.Request) string {
	owner := ownerOf(ctx, req)
	if p := principalOf(ctx, req); p != nil && len(p.Scopes) > 0 {
		owner += "\x00" + strings.Join(slices.Sorted(slices.Values(p.Scopes)), " ")
	}
	return owner
}

// ownerOf returns a key for the caller. Unauthenticated callers share one key.
func ownerOf(ctx context.Context, req *mcp.Request) string {
	if p := principalOf(ctx, req); p != nil {
		return p.Key()
	}
	return "anonymous" // no key, because it begins with no number
}

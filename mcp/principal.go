// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"slices"
	"time"
)

// A Principal is the authenticated caller of a request. The authentication middleware of
// the transport sets it. State that outlives a request (sealed state, sessions, caches) is
// bound to issuer and subject. A nil Principal is a caller that is not authenticated.
type Principal struct {
	Issuer  string         // the authority that names Subject; may be empty
	Subject string         // the caller, unique at the issuer
	Scopes  []string       // the granted scopes
	Claims  map[string]any // further attributes
	Expiry  time.Time      // when the authentication expires; zero means unknown
}

// HasScope reports whether scope was granted. It is false on a nil Principal.
func (p *Principal) HasScope(scope string) bool {
	return p != nil && slices.Contains(p.Scopes, scope)
}

// Is reports whether p and other are the same caller: they have the same issuer and
// subject, or both are nil.
func (p *Principal) Is(other *Principal) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Issuer == other.Issuer && p.Subject == other.Subject
}

// PrincipalFromContext returns the caller of the request that ctx belongs to. It is nil if
// nobody authenticated the caller, as over stdio and in process, or if ctx belongs to no
// request. HasScope and Is work on nil; check for nil before reading a field:
//
//	p := mcp.PrincipalFromContext(ctx)
//	if p == nil {
//		return nil, errors.New("log in first")
//	}
func PrincipalFromContext(ctx context.Context) *Principal {
	if req := RequestFromContext(ctx); req != nil {
		return req.Principal
	}
	return nil
}

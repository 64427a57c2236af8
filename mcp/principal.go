// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"slices"
	"time"
)

// A Principal is the authenticated caller of a request. Whoever authenticated
// it fills it in; the core only compares. What outlives a request (sealed
// state, sessions, caches) is bound to issuer and subject.
type Principal struct {
	Issuer  string         // who vouches for Subject; may be empty
	Subject string         // who calls, unique at the issuer
	Scopes  []string       // what was granted
	Claims  map[string]any // whatever else is known of the caller
	Expiry  time.Time      // when the authentication ends; zero means not known
}

// HasScope reports whether scope was granted. It is false on a nil Principal.
func (p *Principal) HasScope(scope string) bool {
	return p != nil && slices.Contains(p.Scopes, scope)
}

// Is reports whether p and other are the same caller: same issuer and subject,
// or both nil.
func (p *Principal) Is(other *Principal) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Issuer == other.Issuer && p.Subject == other.Subject
}

// PrincipalFromContext returns the caller of the request that ctx belongs to, or nil.
func PrincipalFromContext(ctx context.Context) *Principal {
	if req := RequestFromContext(ctx); req != nil {
		return req.Principal
	}
	return nil
}

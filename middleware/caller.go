// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"

	"github.com/go-psi/psi/mcp"
)

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

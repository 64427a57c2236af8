// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"maps"
	"slices"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// withStoredCaller returns req with its caller as the store returns it, so that the first run
// of a handler sees the same claims as later ones. It returns an error that names the claim
// that cannot be stored.
func withStoredCaller(req *mcp.Request) (*mcp.Request, error) {
	if req.Principal == nil {
		return req, nil
	}
	raw, err := strictjson.Marshal(req.Principal)
	if err != nil {
		return nil, callerError(req.Principal, err)
	}
	stored := req.Clone()
	stored.Principal = new(mcp.Principal)
	return stored, strictjson.UnmarshalWith(strictjson.ExactNumbers, raw, stored.Principal)
}

// callerError returns the error for a caller that cannot be encoded as JSON.
func callerError(p *mcp.Principal, err error) error {
	for _, name := range slices.Sorted(maps.Keys(p.Claims)) {
		if _, err := strictjson.Marshal(p.Claims[name]); err != nil {
			return mcp.Errorf(mcp.CodeInternalError, "the claim %q of the caller cannot be stored with a task, because it cannot be encoded as JSON: %w", name, err)
		}
	}
	return mcp.Errorf(mcp.CodeInternalError, "the caller cannot be stored with a task: %w", err)
}

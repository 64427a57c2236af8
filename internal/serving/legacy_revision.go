// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package serving

import (
	"slices"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
)

// IsModern reports whether a request belongs to the newest revision because the request
// names that revision, or because the header of its transport does. The header is "" if
// there is none. Outside of a session, the methods of the newest revision also belong to
// it, so that their errors say what is missing. This is the only place that decides this.
func IsModern(req *mcp.Request, header string, inSession bool) bool {
	switch {
	case core.IsModern(req):
		return true
	case req.Method == revision.Initialize && !req.IsNotification():
		return false
	case slices.Contains(mcp.ModernVersions(), header):
		return true
	}
	return !inSession && (req.Method == mcp.MethodDiscover || req.Method == mcp.MethodListen)
}

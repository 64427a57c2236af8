// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package serving

import (
	"slices"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
)

// IsModern reports whether a request belongs to the newest revision: it names the
// revision itself, or the header of its transport does, which is "" without one.
// Outside of a session the methods of the newest revision do as well, so that their
// errors say what is missing. This is the one place where that is decided.
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

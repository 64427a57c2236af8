// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"slices"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
)

// isModern reports whether a message belongs to the newest revision because the message names
// that revision, or because the first header of its transport does. Outside of a session, the
// methods of the newest revision also belong to it, so that their errors say what is missing.
// This is the only place that decides this.
func isModern(req *mcp.Request, from Origin) bool {
	switch named := from.Header[header.Version]; {
	case from.IsLegacy:
		return false
	case core.IsModern(req):
		return true
	case req.Method == revision.Initialize && !req.IsNotification():
		return false
	case len(named) > 0 && slices.Contains(mcp.ModernVersions(), named[0]):
		return true
	}
	return !from.InSession && (req.Method == mcp.MethodDiscover || req.Method == mcp.MethodListen)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "github.com/go-psi/psi/internal/revision"

// NotificationRootsListChanged tells a server of an older revision that the roots of its
// client have changed.
const NotificationRootsListChanged = revision.RootsListChanged

// legacyMethods are the methods and notifications that only the older revisions have.
var legacyMethods = []string{
	revision.Initialize, revision.Initialized, revision.Ping, revision.SetLevel, revision.Unsubscribe, NotificationRootsListChanged,
}

// isLegacyCode reports whether an error code is one that only the older revisions have.
func isLegacyCode(code int) bool {
	return code == revision.CodeURLElicitationRequired || code == revision.CodeUserRejectedRequest
}

// firstMethods are the methods with which a client begins.
const firstMethods = MethodDiscover + " or " + revision.Initialize

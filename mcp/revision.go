// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

// LatestVersion is the newest revision of the protocol that this package speaks.
const LatestVersion = "2026-07-28"

// ModernVersions returns the revisions without a handshake, newest first. A request
// names one of them itself.
func ModernVersions() []string { return []string{LatestVersion} }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

// LatestVersion is the newest protocol revision that this package supports.
const LatestVersion = "2026-07-28"

// ModernVersions returns the supported revisions without a handshake, newest first. In these,
// each request names its revision.
func ModernVersions() []string { return []string{LatestVersion} }

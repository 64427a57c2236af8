// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "github.com/go-psi/psi/internal/revision"

// The revisions of the protocol, by date.
const (
	Version20241105 = "2024-11-05"
	Version20250326 = "2025-03-26"
	Version20250618 = "2025-06-18"
	Version20251125 = "2025-11-25"
	Version20260728 = "2026-07-28"

	// LatestVersion is the newest revision that this package speaks.
	LatestVersion = Version20260728
)

// ModernVersions are the versions that a request can name for itself, newest
// first: those without a handshake.
func ModernVersions() []string { return []string{Version20260728} }

// LegacyVersions are the versions that begin with initialize, newest first.
func LegacyVersions() []string { return revision.Names() }

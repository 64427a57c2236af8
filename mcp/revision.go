// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "slices"

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

// revision orders the versions. The first four are the legacy era, with its
// initialize handshake; the last is the modern era, whose requests stand alone.
type revision uint8

const (
	revNone revision = iota
	rev2024
	rev2025March
	rev2025June
	rev2025November
	rev2026
)

var versions = [...]string{
	rev2024:         Version20241105,
	rev2025March:    Version20250326,
	rev2025June:     Version20250618,
	rev2025November: Version20251125,
	rev2026:         Version20260728,
}

const (
	newestLegacy = rev2025November
	newestModern = rev2026
)

func (r revision) String() string { return versions[r] }

func (r revision) modern() bool { return r >= rev2026 }

// revisionOf is revNone for a version that this package does not speak.
func revisionOf(version string) revision {
	if i := slices.Index(versions[1:], version); i >= 0 {
		return revision(i + 1)
	}
	return revNone
}

// ModernVersions are the versions that a request can name for itself, newest
// first: those without a handshake.
func ModernVersions() []string { return []string{Version20260728} }

// LegacyVersions are the versions that begin with initialize, newest first.
func LegacyVersions() []string {
	return []string{Version20251125, Version20250618, Version20250326, Version20241105}
}

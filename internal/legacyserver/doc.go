// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package legacyserver translates for clients of the older revisions, from 2024-11-05 to
// 2025-11-25: it answers their handshake, keeps their sessions, and turns everything
// else into requests of the newest revision to an [mcp.Handler].
package legacyserver

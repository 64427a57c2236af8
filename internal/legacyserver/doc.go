// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package legacyserver serves clients of the older revisions, from 2024-11-05 to
// 2025-11-25. It answers their handshake, maintains their sessions, and translates all
// other messages into requests of the newest revision to an [mcp.Handler].
package legacyserver

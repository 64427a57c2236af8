// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package card knows the server.json of the MCP Registry: what is in it, and what makes a
// registry or a host refuse it.
//
// The types follow the schema of 2025-12-11. The rules are those of the schema, of the official
// registry as far as they need no network, and a few of psi, which say so by being warnings.
package card

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package authserver is an authorization server FOR TRYING OUT ONLY: its one user has a
// password that everyone can read in its source, anyone may register a client and
// guess, and all is forgotten when it ends.
//
// What it does is what clients of MCP need: metadata (RFC 8414), registration (RFC
// 7591), authorization codes with PKCE (RFC 7636) for one resource (RFC 8707), and
// tokens that are JWTs (RFC 9068) or, to get the next one, rotate.
package authserver

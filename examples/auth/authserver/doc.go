// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package authserver is an authorization server FOR TRYING OUT ONLY: the password of its
// only user is public, anyone may register a client and guess passwords, and all state is
// lost when it exits.
//
// It implements what MCP clients need: metadata (RFC 8414), registration (RFC 7591),
// authorization codes with PKCE (RFC 7636) for one resource (RFC 8707), access tokens that
// are JWTs (RFC 9068), and rotating refresh tokens.
package authserver

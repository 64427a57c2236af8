// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package peers tests psi against other implementations of MCP: its client against their
// servers, and its server against their clients. They are the Go SDK, mcp-go, the
// TypeScript SDK, the reference server "everything", the MCP Inspector, and two that share
// no code with the SDKs: servers made with tmcp, and the client of Vercel's AI SDK. The npm
// packages are installed by internal/test/interop/run.sh; without them, their tests are skipped.
//
// Clients log in through package authserver with two OpenID providers behind it, one from npm and
// one in Go.
//
// TestCommand tests the command psi with published servers from npm and the Go module
// proxy.
//
// A leg is a client, a server and a transport between them, tested with several revisions
// of the protocol. The same features are tried on every leg. A feature that does not work
// is declared with a reason, and the declaration must be removed once the feature works.
package peers

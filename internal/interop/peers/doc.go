// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package peers holds tests of psi against other implementations of MCP: its client
// against their servers, its server against their clients. They are the Go SDK,
// mcp-go, the TypeScript SDK, the reference server "everything", the MCP Inspector, and two
// that share no code with the SDKs: servers made with tmcp, and the client of Vercel's AI SDK.
// Those of npm are installed by internal/interop/run.sh; without them, their tests are skipped.
//
// TestCommand tries the command psi with published servers of npm and of the Go module proxy.
//
// A leg is a client, a server and a transport between them, tried in several
// revisions of the protocol. Every leg has the same features tried; what does not
// work is declared with its reason, and has to be taken out when it works.
package peers

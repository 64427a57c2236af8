// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcptrace provides mechanisms to trace the events within a client of package [mcp]:
// the choice of the revision, retries, and each message. It is to an MCP client what
// net/http/httptrace is to an HTTP client.
//
// [mcp]: https://pkg.go.dev/github.com/go-psi/psi/mcp
package mcptrace

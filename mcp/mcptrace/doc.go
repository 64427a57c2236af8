// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcptrace provides mechanisms to trace the events within a client of package [mcp]:
// the choice of the revision, retries, and each message. It is to an MCP client what
// net/http/httptrace is to an HTTP client.
//
// This package is a tool, as docs/stability.md defines it: its API may change.
//
// [mcp]: https://pkg.go.dev/github.com/go-psi/psi/mcp
package mcptrace

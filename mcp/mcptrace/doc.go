// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcptrace observes what a client of package [mcp] does beside its results: which
// revision it chooses, what it asks again, and each message. It is to a client what
// net/http/httptrace is to an HTTP client.
//
// [mcp]: https://pkg.go.dev/github.com/go-psi/psi/mcp
package mcptrace

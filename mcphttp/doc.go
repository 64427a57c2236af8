// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcphttp speaks MCP over HTTP: as streamable HTTP, of all revisions that
// have it on one endpoint, and in the deprecated form of 2024-11-05.
//
// A [Handler] is an http.Handler: it is mounted on whatever router there is, and
// wrapped in whatever middleware. To which revision a request belongs is seen
// from the request itself, so that clients of every age share one URL:
//
//	r := chi.NewRouter()
//	r.Handle("/mcp", mcphttp.NewHandler(mux, nil))
//
// A request of the modern era stands alone: it is served on the goroutine that
// net/http gives it, leaves nothing behind, and is cancelled when its client
// disconnects. The legacy era has sessions, kept here, whose streams can be
// resumed.
//
// For clients, [NewTransport] is the way to a server of any of these revisions, and
// [NewSSETransport] to one that has only the deprecated form.
package mcphttp

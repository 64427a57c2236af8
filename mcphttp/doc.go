// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcphttp speaks MCP over HTTP: as streamable HTTP, of all revisions that
// have it on one endpoint, and in the deprecated form of 2024-11-05.
//
// A [Handler] is an http.Handler: it is mounted on whatever router there is, and
// wrapped in whatever middleware. To which revision a request belongs is seen
// from the request itself, so that clients of every age share one URL:
//
//	r := http.NewServeMux() // or chi, or any other
//	r.Handle("/mcp", mcphttp.NewHandler(mux, nil))
//	log.Fatal(http.ListenAndServe("127.0.0.1:8080", r))
//
// A request of the modern era stands alone: it is served on the goroutine that
// net/http gives it, leaves nothing behind, and is cancelled when its client
// disconnects. The legacy era has sessions, kept here, whose streams can be
// resumed.
//
// A Handler refuses requests by which a web page could reach a server on its
// visitor's machine; a server with a public name says so in [Options]. [NewRouter]
// adds the deprecated form and a page for health checks, [CORS] lets in pages of
// other origins, and [Handler.Shutdown] ends the streams that http.Server.Shutdown
// would wait for.
//
// Authentication is HTTP middleware around a Handler, which hands on the caller by
// [WithPrincipal]: that of [github.com/go-psi/psi/mcphttp/auth], or one's own. In a
// handler of MCP, [RequestFrom] is the HTTP request.
//
// For clients, [NewTransport] is the way to a server of any of these revisions, and
// [NewSSETransport] to one that has only the deprecated form. Servers that want to
// know who calls are for [github.com/go-psi/psi/mcphttp/oauth].
package mcphttp

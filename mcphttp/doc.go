// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcphttp serves and calls MCP over HTTP: streamable HTTP of every revision on one
// endpoint, and HTTP+SSE, the deprecated transport of 2024-11-05.
//
// A [Handler] is an [http.Handler]: mount it on any router and wrap it in any middleware.
// Each request states its revision, so all clients share one URL:
//
//	r := http.NewServeMux() // or chi, or any other
//	r.Handle("/mcp", mcphttp.NewHandler(mux, nil))
//	log.Fatal(http.ListenAndServe("127.0.0.1:8080", r))
//
// A request of the modern era is independent of all others: it is served in the goroutine
// of net/http and cancelled when its client disconnects. The legacy era has sessions, which
// the Handler keeps, with streams that clients can resume.
//
// A Handler refuses requests by which a web page could reach a server on its visitor's
// machine. List the public names of a server in [Options].AllowedHosts. [NewRouter] adds
// the deprecated transport and a health check, [CORS] lets in pages of other origins, and
// [Handler.Shutdown] ends the streams that http.Server.Shutdown would wait for.
//
// Authentication is HTTP middleware around a Handler that passes the caller on with
// [WithPrincipal]: that of [github.com/go-psi/psi/mcphttp/auth], or your own. In an MCP
// handler, [RequestFromContext] returns the HTTP request.
//
// For clients, [NewTransport] connects to a server of any of these revisions, and
// [NewSSETransport] to one that has only the deprecated transport. For servers that
// require authorization, see [github.com/go-psi/psi/mcphttp/oauth].
package mcphttp

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcphttp implements MCP servers and clients over HTTP: streamable HTTP of every
// revision on one endpoint, and HTTP+SSE, the deprecated transport of revision 2024-11-05.
//
// A [Handler] is an [http.Handler]: mount it on any router and wrap it in any middleware.
// Each request states its revision, so all clients share one URL:
//
//	r := http.NewServeMux() // or chi, or any other
//	r.Handle("/mcp", mcphttp.NewHandler(mux, nil))
//	log.Fatal(http.ListenAndServe("127.0.0.1:8080", r))
//
// In the modern era, each request is independent of all others: it is served in the
// goroutine of net/http and cancelled when its client disconnects. In the legacy era,
// requests belong to sessions, which the Handler manages, with streams that clients can
// resume.
//
// A Handler refuses requests that would let a web page reach a server on its visitor's
// machine. List the public names of a server in [Options].AllowedHosts. [NewRouter] adds
// the deprecated transport and a health check, [CORS] admits pages from other origins, and
// [Handler.Shutdown] ends the streams that http.Server.Shutdown would wait for.
//
// To authenticate callers, wrap a Handler in HTTP middleware that calls [WithPrincipal]:
// use package [github.com/go-psi/psi/mcphttp/auth] or write your own. In an MCP handler,
// [RequestFromContext] returns the HTTP request.
//
// For clients, [NewTransport] connects to a server of any of these revisions, and
// [NewSSETransport] to one that supports only the deprecated transport. For servers that
// require authorization, see [github.com/go-psi/psi/mcphttp/oauth].
//
// This package is stable, as docs/stability.md defines it.
package mcphttp

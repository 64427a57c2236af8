// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package debug serves a live page about a server, as net/http/pprof does for a program. The page
// shows what is registered and where in the source, requests in flight and recent requests with
// the causes of their errors, and sessions and streams. It has forms to call tools, read
// resources and get prompts.
//
//	endpoint := mcphttp.NewHandler(mux, nil)
//	r.Handle("/mcp", endpoint)
//	r.Mount("/debug/mcp", debug.Handler(mux, endpoint))
//
// The handler may also be a connection to a server. The page then shows the server as its client
// sees it:
//
//	http.ListenAndServe("127.0.0.1:8080", debug.Handler(conn))
//
// Anyone who can open the page can call everything that is registered, bypassing any
// authentication of the endpoint. The page is never mounted by default, and it serves only
// requests from this machine unless [Options.Authorize] is set. Cross-site requests are always
// rejected.
//
// A server is observed only while the page is in use: from the first request for the page until
// some minutes after the last one. Requests that were already in flight are counted, but not
// shown; see [Options.Always].
//
// The page has a single URL path; the query selects the view or other content, such as scripts.
// With format=json in the query, the response is JSON. The names of its members may change
// between versions of psi.
//
// This package is a tool, as docs/stability.md defines it: its API may change.
package debug

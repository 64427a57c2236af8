// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package debug serves a live page about a server, as net/http/pprof does for a program: what
// is registered and by which line, requests in flight and recent ones with the causes of their
// errors, sessions and streams, and forms that call tools, read resources and get prompts.
//
//	endpoint := mcphttp.NewHandler(mux, nil)
//	r.Handle("/mcp", endpoint)
//	r.Mount("/debug/mcp", debug.Handler(mux, endpoint))
//
// The handler of the page may also be a connection to a server, which is then shown as its
// client sees it:
//
//	http.ListenAndServe("127.0.0.1:8080", debug.Handler(conn))
//
// Anyone who can open the page can call everything that is registered, behind whatever
// authentication the endpoint has. Nothing mounts the page by default, and it answers only
// requests from this machine unless [Options.Authorize] decides otherwise. Requests of other
// sites are refused in any case.
//
// A server is observed only while someone looks: from the first request for the page until two
// minutes after the last one. So a request that was in flight before that is counted, but not
// shown; see [Options.Always].
//
// The page has one address, and everything that it refers to is in the query of that address.
// With format=json in the query, the same is sent as JSON. What its members are called may
// change with versions of psi.
package debug

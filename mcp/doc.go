// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcp is the core of psi, a toolkit for the Model Context Protocol in
// the manner of net/http.
//
// Everything that answers an MCP request is a [Handler]: a tool, a prompt, a
// resource, the [Mux] that routes to them, a mux mounted in a mux, a connection
// to another server. Handlers are wrapped in [Middleware] and made from plain
// functions by [ToolFunc], [PromptFunc] and [ResourceFunc]:
//
//	mux := mcp.NewMux("calculator", "v1.0.0", nil)
//	mux.Tool("add", mcp.ToolFunc(add, &mcp.Tool{Description: "Add two integers."}))
//
// A mux is served over stdio by package mcpstdio, over HTTP by package mcphttp,
// and over any other stream of messages by [ServeStream].
//
// # Eras
//
// The revision 2026-07-28 of the protocol did away with handshakes and sessions.
// This package speaks it throughout. For clients of the revisions before it, the
// legacy era, [Legacy] keeps the session and translates at the edge, so that a
// handler serves clients of all revisions without knowing of which.
//
// # In a handler
//
// What a handler may need besides its arguments comes from its context:
// [Progress], [Logger], [RequestFrom], [PrincipalFrom], [SessionFrom], and the
// questions to the user, [Elicit], [Sample], [Roots] and [Ask]. A handler that
// asks runs again from its top when the answer is there; [Once] keeps what must
// not be done twice.
package mcp

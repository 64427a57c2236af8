// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcp is a toolkit for the Model Context Protocol in the style of net/http.
//
// Everything that answers an MCP request is a [Handler]: a tool, a prompt, a resource, the
// [Mux] that routes to them, a mux mounted in another mux, or a connection to another
// server. Handlers can be wrapped in [Middleware] and are created from plain functions by
// [ToolFunc], [PromptFunc] and [ResourceFunc]:
//
//	mux := mcp.NewMux("calculator", "v1.0.0", nil)
//	mux.Tool("add", mcp.ToolFunc(add, &mcp.Tool{Description: "Add two integers."}))
//
// To serve a mux, use [github.com/go-psi/psi/mcpstdio.Serve] for standard input and output,
// [github.com/go-psi/psi/mcphttp.NewHandler] for HTTP, and
// [github.com/go-psi/psi/mcpstdio.ServeStream] for any other stream of messages.
//
// A [Client] connects to a server in the same process ([InProcess]), at a URL
// ([github.com/go-psi/psi/mcphttp.NewTransport]) or in a command that it starts
// ([github.com/go-psi/psi/mcpstdio.NewCommand]). A [Conn] has a method for every request of
// the specification and is itself a Handler:
//
//	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
//	…
//	defer conn.Close()
//	sum, err := mcp.Call[AddOut](ctx, conn, "add", AddIn{2, 3})
//
// Package [github.com/go-psi/psi/mcp/mcptest] helps test handlers. Package
// [github.com/go-psi/psi/mcp/transport] is for authors of transports.
//
// # Revisions
//
// Revision 2026-07-28 of the protocol has no handshake and no sessions. This package uses
// it throughout. For clients of older revisions, the transports keep a session and
// translate each message, so a handler serves clients of all revisions without knowing
// which. A Client determines which revision its server speaks and translates accordingly.
//
// # In a handler
//
// In addition to its arguments, a handler uses its context: for [Progress], [ClientLogger],
// [RequestFromContext], [PrincipalFromContext] and [SessionFromContext], and to ask
// questions with [Elicit], [Sample], [Roots] and [Ask]. A handler that asks runs again from
// the start when the answer arrives; use [Once] for work that must not be repeated.
//
// An error returned by a typed function is for the model, which sees it as the result of
// the tool. An [*Error], such as one from [Errorf], is for the client: it fails the
// request. A panic also fails the request, and nothing else.
//
// This package is stable, as docs/stability.md defines it.
package mcp

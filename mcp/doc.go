// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcp is a toolkit for the Model Context Protocol in the manner of net/http.
//
// Everything that answers an MCP request is a [Handler]: a tool, a prompt, a resource, the
// [Mux] that routes to them, a mux mounted in another mux, a connection to another server.
// Handlers are wrapped in [Middleware] and made from plain functions by [ToolFunc],
// [PromptFunc] and [ResourceFunc]:
//
//	mux := mcp.NewMux("calculator", "v1.0.0", nil)
//	mux.Tool("add", mcp.ToolFunc(add, &mcp.Tool{Description: "Add two integers."}))
//
// To serve a mux, use [github.com/go-psi/psi/mcpstdio.Serve] for standard input and output,
// [github.com/go-psi/psi/mcphttp.NewHandler] for HTTP, and
// [github.com/go-psi/psi/mcpstdio.ServeStream] for any other stream of messages.
//
// A [Client] connects to a server in this process ([InProcess]), at a URL
// ([github.com/go-psi/psi/mcphttp.NewTransport]) or in a program
// ([github.com/go-psi/psi/mcpstdio.NewCommand]). A [Conn] has a method for every request of
// the specification, and is a Handler as well:
//
//	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
//	…
//	defer conn.Close()
//	sum, err := mcp.Call[AddOut](ctx, conn, "add", AddIn{2, 3})
//
// Package [github.com/go-psi/psi/mcp/mcptest] helps to test handlers, and package
// [github.com/go-psi/psi/mcp/transport] is for authors of transports.
//
// # Revisions
//
// The revision 2026-07-28 of the protocol has no handshake and no sessions. This package
// speaks it throughout. For clients of older revisions, the transports keep a session and
// translate each message, so a handler serves clients of all revisions without knowing
// which. A Client finds out which revision its server speaks, and translates as well.
//
// # In a handler
//
// A handler gets what it needs besides its arguments from its context: [Progress],
// [ClientLogger], [RequestFromContext], [PrincipalFromContext], [SessionFromContext], and
// the questions to the user, [Elicit], [Sample], [Roots] and [Ask]. A handler that asks
// runs again from its top when the answer is there; [Once] keeps what must not be done
// twice.
//
// The error of a typed function is for the model, which reads it as the result of the tool.
// An [*Error], such as one of [Errorf], is for the client: it fails the request. A panic
// fails the request as well, and nothing else.
package mcp

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
// A mux is served over standard input and output by
// [github.com/go-psi/psi/mcpstdio.Serve], over HTTP by
// [github.com/go-psi/psi/mcphttp.NewHandler], and over any other stream of messages
// by [ServeStream].
//
// A [Client] connects to a server in this process ([InProcess]), at a URL
// ([github.com/go-psi/psi/mcphttp.NewTransport]) or in a program
// ([github.com/go-psi/psi/mcpstdio.NewCommand]). A [Conn] has a method for every
// request of the specification, and is a Handler, too:
//
//	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
//	…
//	defer conn.Close()
//	sum, err := mcp.Call[AddOut](ctx, conn, "add", AddIn{2, 3})
//
// Tests of handlers have [github.com/go-psi/psi/mcp/mcptest].
//
// # Eras
//
// The revision 2026-07-28 of the protocol did away with handshakes and sessions.
// This package speaks it throughout. For clients of the revisions before it, the
// legacy era, transports keep a session and translate at the edge, by [Legacy], so
// that a handler serves clients of all revisions without knowing of which. A Client
// finds out which revision its server speaks, and translates likewise.
//
// # In a handler
//
// What a handler may need besides its arguments comes from its context:
// [Progress], [ClientLogger], [RequestFromContext], [PrincipalFromContext], [SessionFromContext], and the
// questions to the user, [Elicit], [Sample], [Roots] and [Ask]. A handler that
// asks runs again from its top when the answer is there; [Once] keeps what must
// not be done twice.
//
// An error that a typed function returns is for the model, which reads it as the
// result of the tool. An [*Error], such as one of [Errorf], is for the client: it
// fails the request. A panic fails the request, too, and nothing else.
package mcp

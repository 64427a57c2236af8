// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcptest helps to test MCP servers and clients, as net/http/httptest does for
// HTTP. It connects the client of package mcp, so that tests use what programs use, and
// checks every message against the specification.
//
// [Run] runs one test in both eras of the protocol on every transport:
//
//	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
//		got, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"})
//		if err != nil || got != "Hello, Ada!" {
//			t.Errorf("got %q, %v", got, err)
//		}
//	})
//
// [RunNew] does the same with a new handler for each run. [Connect] makes one connection
// in memory. A [Client] has the options of the client, the authenticated caller and the
// HTTP headers; its methods do the same as the functions, which use the zero Client.
// [Dial] connects to any transport, and [Serve] serves a whole HTTP router for it. [As]
// is middleware that stands in for authentication where there is no Client.
//
// A handler can also be called without a connection: [NewRequest] makes a request, and
// [Do] serves it and records the notifications.
//
//	res, rec, err := mcptest.Do(t, mux, mcptest.NewRequest("tools/call", map[string]any{"name": "add"}))
//
// [Check] checks the messages of any transport, [Faulty] delays, drops or duplicates
// them, and [NoLeaks] fails a test that leaves goroutines behind, as [Run] does. To send what no client
// sends, such as malformed messages, serve one end of a [transport.Pipe] and write to the
// other.
//
// Everything that this package starts ends with the test.
package mcptest

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcptest provides utilities for testing MCP servers and clients, as
// net/http/httptest does for HTTP. It uses the client of package mcp, as programs do, and
// checks every message against the specification.
//
// [Run] runs a test in both eras of the protocol on every transport:
//
//	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
//		got, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"})
//		if err != nil || got != "Hello, Ada!" {
//			t.Errorf("got %q, %v", got, err)
//		}
//	})
//
// [RunNew] does the same with a new handler for each run. [Connect] makes a single in-memory
// connection. A [Client] configures the client options, the authenticated caller and the HTTP
// headers; the functions use the zero Client, and the methods of Client do the same with other
// settings. [Dial] connects to any transport, and [Serve] serves a whole HTTP router to dial.
// [As] returns middleware that replaces authentication where there is no Client.
//
// A handler can also be called without a connection: [NewRequest] creates a request, and [Do]
// serves it and records the notifications.
//
//	res, rec, err := mcptest.Do(t, mux, mcptest.NewRequest("tools/call", map[string]any{"name": "add"}))
//
// [Check] checks the messages of any transport, [Faulty] delays, drops or duplicates them,
// and [NoLeaks] fails a test that leaks goroutines, as [Run] does. To send messages that no
// client sends, such as malformed ones, serve one end of a [transport.Pipe] and write to the
// other.
//
// Everything started by this package is stopped when the test ends.
//
// This package is stable, as docs/stability.md defines it.
package mcptest

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcptest helps to test MCP servers, as net/http/httptest does HTTP
// servers.
//
// The shortest way calls a handler without any wire: [NewRequest] makes a
// request, [Do] serves it and records what the handler said on the way.
//
//	res, rec, err := mcptest.Do(t, mux, mcptest.NewRequest("tools/call", map[string]any{"name": "add"}))
//
// [Connect] connects a client to a handler in memory. [Run] runs one test over
// every era of the protocol and every transport, which is how to make sure that a
// handler gives each of its clients the same answer:
//
//	mcptest.Run(t, mux, func(t *testing.T, c *mcptest.Conn) {
//		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: []byte(`{"a":1,"b":2}`)})
//		…
//	})
//
// [RunClient] does the same with the client that programs use, and over more ways;
// [Dial] connects it once, and [Faulty] makes its messages come late, twice or never.
//
// A [Client] says what the other side can be asked and who it is; its methods do
// the same as the functions, which use the zero Client.
//
// Whatever is started here ends with the test. [NoLeaks] makes sure that nothing
// else goes on after it.
package mcptest

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcpstdio serves MCP over standard input and output, and over any other
// stream of bytes, one JSON message a line (basic/transports/stdio).
//
// A server that its client starts as a program has a main function that calls
// [Serve]:
//
//	func main() {
//		if err := mcpstdio.Serve(context.Background(), mux); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// Standard output then belongs to the protocol; logs go to standard error, where
// packages log and slog write by default. [Server] has more to choose.
//
// A client starts such a program with [NewCommand], and ends it with the connection:
//
//	transport := mcpstdio.NewCommand(exec.Command("./server"), nil)
//	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, transport)
//
// [ServeListener] and [NewSocket] do the same over sockets, for a server that runs
// already; [NewStream] makes a stream of messages of any reader and writer.
package mcpstdio

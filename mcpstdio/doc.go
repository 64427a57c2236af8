// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcpstdio implements MCP over standard input and output, and over any other byte
// stream, with one JSON message per line (basic/transports/stdio).
//
// A server that its client starts as a program calls [Serve] in its main function:
//
//	func main() {
//		if err := mcpstdio.Serve(context.Background(), mux, nil); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// Standard output is then reserved for the protocol. Logs go to standard error, where
// packages log and slog write by default. [Options] has more.
//
// A client starts such a program with [NewCommand]; closing the connection ends it:
//
//	transport := mcpstdio.NewCommand(exec.Command("./server"), nil)
//	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, transport)
//
// [ServeListener] and [NewSocket] do the same over sockets, for a server that is already
// running. [NewStream] makes a stream of messages from any reader and writer.
//
// This package is stable, as docs/stability.md defines it.
package mcpstdio

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package transport defines the interfaces that transports implement. It is to package mcp
// what database/sql/driver is to database/sql: most code should use package mcp.
//
// A client connects through a [Transport], which opens a [Conn]: a connection that
// carries whole JSON-RPC messages. A transport over a byte stream implements [Stream]
// instead and gets its Conn from [NewConn]. The package also parses and encodes messages
// ([ParseMessage], [AppendRequest] and so on).
//
// This package is stable, as docs/stability.md defines it.
package transport

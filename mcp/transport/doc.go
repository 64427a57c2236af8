// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package transport is for authors of transports: it stands to package mcp as
// database/sql/driver stands to database/sql. People who write handlers or call servers
// need nothing of it.
//
// A client connects through a [Transport], which opens a [Conn]: a connection that
// carries whole JSON-RPC messages. A transport over a byte stream implements [Stream]
// instead and gets its Conn from [NewConn]. The package also reads and writes the
// messages themselves ([ParseMessage], [AppendRequest] and so on).
package transport

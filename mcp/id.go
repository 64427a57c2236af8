// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "github.com/go-psi/psi/mcp/transport"

// An ID is a JSON-RPC id or a progress token: a string or an integer, kept byte for
// byte as its sender wrote it. IDs are comparable. The zero ID means that there is
// none: a [Request] with a zero ID is a notification. See [transport.ID] for its
// methods.
type ID = transport.ID

// StringID returns the ID that is the string s.
func StringID(s string) ID { return transport.StringID(s) }

// IntID returns the ID that is the integer n.
func IntID(n int64) ID { return transport.IntID(n) }

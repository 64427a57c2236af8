// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package header

import "strings"

// The headers of the protocol. All but LastEventID are in canonical form.
const (
	Version     = "Mcp-Protocol-Version"
	Method      = "Mcp-Method"
	Name        = "Mcp-Name"
	Session     = "Mcp-Session-Id"
	LastEventID = "Last-Event-ID"
)

// paramPrefix begins the headers that mirror arguments.
const paramPrefix = "Mcp-Param-"

// IsProtocol reports whether a canonical header key is defined by the protocol.
func IsProtocol(key string) bool {
	switch key {
	case Version, Method, Name, Session, "Last-Event-Id":
		return true
	}
	return strings.HasPrefix(key, paramPrefix)
}

// The media types of a message and of an event stream.
const (
	JSON        = "application/json"
	EventStream = "text/event-stream"
)

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package header

// The headers of the protocol, in canonical form.
const (
	Version     = "Mcp-Protocol-Version"
	Method      = "Mcp-Method"
	Name        = "Mcp-Name"
	Session     = "Mcp-Session-Id"
	LastEventID = "Last-Event-ID"
)

// The media types of a message and of an event stream.
const (
	JSON        = "application/json"
	EventStream = "text/event-stream"
)

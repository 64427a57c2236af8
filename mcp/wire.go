// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
)

// A Transport opens connections to one server. [InProcess], [StreamTransport] and the
// transports of mcpstdio and mcphttp implement it.
type Transport interface {
	// Connect opens a connection. Receive is called for every message that is not the
	// response to a Call; it may be called before Connect returns. The context is for
	// connecting only.
	Connect(ctx context.Context, receive Receiver) (Wire, error)
}

// A Receiver handles a message that is not a response to a [Wire.Call]: a notification or,
// in the legacy era, a request of the server. It is called by one goroutine at a time, in
// the order of the messages. It must not block, and so must not wait for a Call on the same
// connection. About is the ID of the request whose stream carried the message, or the zero
// ID.
//
// A zero Message reports that unsolicited messages may have been lost, for example across
// a reconnect. A Message with an Err could not be read; if it is the response to a Call,
// the Call fails as well.
type Receiver func(m Message, about ID)

// A Wire is a connection to a server that carries whole messages. It must be safe for
// concurrent use.
//
// A Wire may have a method Ordered() bool that reports whether the wire is a byte stream,
// on which a server reads one message after the other. If a server leaves server/discover
// unanswered on such a wire, the client sends initialize after it. A Wire that wraps another
// may have a method Unwrap() Wire, by which the Ordered method of the other is found.
type Wire interface {
	// Call sends a request and returns the server's response, which may be an error
	// response. An error of Call itself means that the request may or may not have been
	// served, except [ErrNotUnderstood] and [ErrSessionLost]. It wraps [ErrUnreadable] if
	// the response could not be read. When ctx is done, Call cancels the request as the
	// transport and the version of the message require, and returns the cause of ctx.
	Call(ctx context.Context, m *Envelope) (*Response, error)
	// Send sends a notification or a response.
	Send(ctx context.Context, m *Envelope) error
	// Close closes the connection and releases its resources, within a bound of its own.
	// Pending calls fail with [ErrClosed]. It may be called more than once, and by a
	// Receiver.
	Close() error
	// Done returns a channel that is closed when the connection has ended. Err then
	// returns the reason, [ErrClosed] after Close. A transport that connects for each
	// message ends only by Close.
	Done() <-chan struct{}
	Err() error
}

// An Envelope is a message to a server, with what a transport needs to know about it.
type Envelope struct {
	ID      ID     // zero for a notification; the ID of the request for a response
	Method  string // "" for a response
	Name    string // params.name or params.uri, where that is mirrored in a header
	Version string // the negotiated protocol version, "" before it is known
	Params  []HeaderParam
	Body    []byte // the encoded message; not changed after it was sent
}

// A HeaderParam is an argument that is mirrored in a header (x-mcp-header). Its value is
// not encoded yet; see [transport.EncodeHeaderValue].
type HeaderParam struct{ Key, Value string }

// Errors of wires.
var (
	// ErrNotUnderstood means that the server refused a message as no modern server does: it
	// speaks another protocol, or an older revision of this one. The message had no effect.
	ErrNotUnderstood = errors.New("mcp: the server did not understand the message")
	// ErrSessionLost means that the server does not know the session any more, and that a
	// new session did not help. The message had no effect.
	ErrSessionLost = errors.New("mcp: the session is lost")
	// ErrUnauthorized means that the server requires authorization.
	ErrUnauthorized = errors.New("mcp: the server refused the caller")
)

// appendAnswer appends the response to a question of the server.
func appendAnswer(dst []byte, id ID, result json.RawMessage, err error) []byte {
	if err != nil {
		return AppendErrorResponse(dst, id, err)
	}
	dst = appendID(dst, id)
	dst = append(dst, `,"result":`...)
	dst = append(dst, result...)
	return append(dst, '}')
}

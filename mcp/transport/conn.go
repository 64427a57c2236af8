// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import "context"

// A Transport opens connections to one server.
type Transport interface {
	// Connect opens a connection; ctx is for connecting only. receive is called for
	// every message that is not the response to a Call; it may be called before Connect
	// returns.
	Connect(ctx context.Context, receive Receiver) (Conn, error)
}

// A Receiver takes a message that is not the response to a [Conn.Call]: a notification
// or, from servers of older revisions, a request. It is called by one goroutine at a
// time, in the order in which the messages came, and must return soon: it must not wait
// for a Call of the same connection. about is the ID of the request whose stream carried
// the message, or the zero ID.
//
// A zero Message reports that unsolicited messages may have been lost, for example
// across a reconnect. A Message with an Err could not be read; if it is the response to a
// Call, that fails as well.
type Receiver func(m Message, about ID)

// A Conn is a connection to a server that carries whole messages. It is safe for
// concurrent use.
//
// A Conn may have a method Ordered() bool, which reports whether it is a byte stream to
// one server process, so that messages arrive one after the other: to a server that leaves
// the first message unanswered another one can be sent. It may have a method Peer() string,
// which describes the server for the error of a client that it leaves without an answer: how
// it is reached, and what it last wrote to its standard error. A Conn that wraps another may
// have a method Unwrap() Conn, by which such methods of the other are found.
type Conn interface {
	// Call sends a request and returns the server's response, which may be an error
	// response. An error of Call is that of the connection: the request may or may not
	// have been served, unless the error wraps [ErrNotUnderstood] or [ErrSessionLost]. If
	// the response cannot be read, the error wraps [ErrUnreadable].
	// When ctx is done, Call cancels the request in the way of the transport and of the
	// message's revision, and returns the context's cause.
	Call(ctx context.Context, m *Outgoing) (*Message, error)
	// Send sends a notification or a response.
	Send(ctx context.Context, m *Outgoing) error
	// Close ends the connection and frees its resources, within a bound of its own.
	// Pending calls fail with [ErrClosed]. It may be called more than once, and by a
	// Receiver.
	Close() error
	// Done returns a channel that is closed when the connection has ended; Err then
	// returns the reason, [ErrClosed] after Close. A transport that connects anew for
	// each message never ends by itself.
	Done() <-chan struct{}
	Err() error
}

// IsOrdered reports whether a connection, or one that it wraps, is a byte stream; see
// [Conn]. It is false for nil.
func IsOrdered(c Conn) bool {
	for {
		switch v := c.(type) {
		case interface{ Ordered() bool }:
			return v.Ordered()
		case interface{ Unwrap() Conn }:
			c = v.Unwrap()
		default:
			return false
		}
	}
}

// Outgoing is a message to a server, and what a transport needs to know of it without
// parsing it.
type Outgoing struct {
	ID      ID     // of the request; of the answered request for a response; zero for a notification
	Method  string // "" for a response
	Name    string // params.name or params.uri, where it is mirrored in a header
	Version string // the protocol version that is spoken, "" before it is known
	Params  []HeaderParam
	Body    []byte // the message; not changed after it was sent
}

// A HeaderParam is an argument that is mirrored in a header (x-mcp-header). Its value is
// not encoded yet; see [EncodeHeaderValue].
type HeaderParam struct{ Key, Value string }

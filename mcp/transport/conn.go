// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import "context"

// A Transport opens connections to one server.
type Transport interface {
	// Connect opens a connection; ctx applies only to connecting. receive is called for
	// every message that is not the response to a Call; it may be called before Connect
	// returns.
	Connect(ctx context.Context, receive Receiver) (Conn, error)
}

// A Receiver handles a message that is not the response to a [Conn.Call]: a notification
// or, from servers of older revisions, a request. It is not called concurrently, and it is
// called in the order in which the messages arrived. It must return quickly: it must not wait
// for a Call of the same connection. m is the Receiver's from then on.
//
// If m.Lost is set, there is no message. A Message with an Err could not be read; if it is the
// response to a Call, the Call fails as well.
type Receiver func(m *Message)

// A Conn is a connection to a server that carries whole messages. It is safe for
// concurrent use. A Conn that wraps another one should embed it, so that it is described as
// the other one is.
type Conn interface {
	// Call sends a request and returns the server's response, which may be an error
	// response. An error of Call is an error of the connection: the request may or may not
	// have been served, unless the error wraps [ErrNotUnderstood] or [ErrSessionLost]. If
	// the response cannot be read, the error wraps [ErrUnreadable].
	// When ctx is done, Call cancels the request as defined by the transport and the
	// message's revision, and returns the context's cause.
	Call(ctx context.Context, m *Outgoing) (*Message, error)
	// Send sends a notification or a response.
	Send(ctx context.Context, m *Outgoing) error
	// Close closes the connection and frees its resources, in bounded time. Pending calls
	// fail with [ErrClosed]. Close may be called more than once, and by a Receiver.
	Close() error
	// Done returns a channel that is closed when the connection has ended. Err then
	// returns the reason, [ErrClosed] after Close. A Conn that opens a new network
	// connection for each message never ends by itself.
	Done() <-chan struct{}
	Err() error
	// Info describes the connection. What it says may change.
	Info() Info
}

// Info describes a [Conn]. The zero Info says nothing.
type Info struct {
	// Ordered reports whether the connection is a byte stream to one server process, so that
	// messages arrive in order: if the server does not answer the first message, the client
	// can send another one.
	Ordered bool
	// NoStream reports that the server sends nothing but responses, and notifications about the
	// requests that it serves: it has no stream for other messages, such as changes.
	NoStream bool
	// Peer describes the server in the error of a client that received no response: how the
	// server is reached, and what it last wrote to standard error. It contains no secrets.
	Peer string
}

// Outgoing is a message to a server, with the metadata that transports need without parsing
// the message.
type Outgoing struct {
	ID      ID     // the ID of the request, also for its response; zero for a notification
	Method  string // "" for a response
	Name    string // params.name, params.uri or params.taskId, where it is mirrored in a header
	Version string // the protocol version of the message; "" before it is known
	Headers []HeaderParam
	Body    []byte // the message; not modified after it was sent
}

// A HeaderParam is an argument that is mirrored in a header (x-mcp-header). Its value is
// not encoded; see [EncodeHeaderValue].
type HeaderParam struct{ Key, Value string }

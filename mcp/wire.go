// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
)

// A Transport makes connections to one server: [InProcess], [StreamTransport],
// those of mcpstdio and mcphttp, or one wrapped around another.
type Transport interface {
	// Connect opens a connection. What the server says, other than in response
	// to a Call, goes to receive, from the moment Connect is called; see
	// [Receiver]. The context is for connecting only.
	Connect(ctx context.Context, receive Receiver) (Wire, error)
}

// A Receiver takes a message that is no response to a [Wire.Call]: a
// notification, or in the legacy era a request of the server. It returns soon, and
// is called by one goroutine at a time, in the order in which the messages came, so
// it must not wait for a Call of the same connection. About is the id of the request
// on whose stream the message came, zero if that is not known.
//
// The zero Message says that messages which belong to no request may have been
// lost, while the connection was broken say. A Message with an Err could not be read; if
// it is the response to a Call, that fails as well.
type Receiver func(m Message, about ID)

// A Wire is a connection to a server that carries whole messages. It knows nothing
// of eras but how its transport writes them. It is safe for concurrent use.
//
// A Wire may have a method Ordered() bool. It reports whether the wire is a byte stream
// to one server, which gets one message after the other; then a server that leaves
// server/discover unanswered for a while is sent initialize after it. A Wire that is
// wrapped around another may have a method Unwrap() Wire, by which such a method of the
// other is found.
type Wire interface {
	// Call sends a request and waits for its response, which is an error of the
	// server's too. The error is that of the wire: the request may or may not have
	// been served, unless the error says more ([ErrNotUnderstood], [ErrSessionLost]). That
	// of a response which could not be read wraps [ErrUnreadable].
	// When ctx is done, the request is cancelled in the way of the transport and of
	// the message's version, and the error is the context's cause.
	Call(ctx context.Context, m *Envelope) (*Response, error)
	// Send sends a notification or a response.
	Send(ctx context.Context, m *Envelope) error
	// Close ends the connection and frees what belongs to it, within a bound of its
	// own. Calls that wait fail with [ErrClosed]. It may be called more than once,
	// also from a Receiver.
	Close() error
	// Done is closed when the connection has ended; Err then says why, [ErrClosed]
	// after Close. A transport that connects anew for each message never ends by
	// itself.
	Done() <-chan struct{}
	Err() error
}

// An Envelope is a message on its way to a server, and what a transport needs to
// know of it without reading it.
type Envelope struct {
	ID      ID     // zero for a notification; of the answered request for a response
	Method  string // "" for a response
	Name    string // params.name or params.uri, where that is mirrored in a header
	Version string // the protocol version that is spoken, "" before it is known
	Params  []HeaderParam
	Body    []byte // the message; not changed after it was sent
}

// A HeaderParam is an argument that is mirrored in a header (x-mcp-header). Its
// value is not encoded yet; see [transport.EncodeHeaderValue].
type HeaderParam struct{ Key, Value string }

// Errors of wires.
var (
	// ErrNotUnderstood means that the server refused a message in a way in which
	// no server of the modern era does: it speaks another protocol, or an older
	// revision of this one. The message had no effect.
	ErrNotUnderstood = errors.New("mcp: the server did not understand the message")
	// ErrSessionLost means that the server does not know the session any more,
	// and that a new one did not help. The message had no effect.
	ErrSessionLost = errors.New("mcp: the session is lost")
	// ErrUnauthorized means that the server wants to know who calls.
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

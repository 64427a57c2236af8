// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "github.com/go-psi/psi/mcp/transport"

type (
	Transport   = transport.Transport
	Wire        = transport.Conn
	Envelope    = transport.Outgoing
	HeaderParam = transport.HeaderParam
	Receiver    = transport.Receiver
	Stream      = transport.Stream
	Message     = transport.Message
)

// Errors of connections.
var (
	// ErrClosed is the error of a connection that was closed, and the cause of a context
	// that ended because the connection, the session or the server was closed.
	ErrClosed = transport.ErrClosed
	// ErrUnreadable means that a peer answered with something that is not a response of
	// this protocol: malformed JSON, a message over the limit, a web page. The request
	// may have been served.
	ErrUnreadable = transport.ErrUnreadable
	// ErrNotUnderstood means that the server refused a message in a way in which no
	// server of the newest revision does.
	ErrNotUnderstood = transport.ErrNotUnderstood
	// ErrSessionLost means that the server no longer knows the session, and that a new
	// one did not help. The request had no effect.
	ErrSessionLost = transport.ErrSessionLost
	// ErrUnauthorized means that the server requires authentication.
	ErrUnauthorized = transport.ErrUnauthorized
)

// fromWire returns the error of a response.
func fromWire(e *transport.Error) *Error {
	return &Error{Code: e.Code, Message: e.Message, Data: e.Data, Cause: e.Cause}
}

// toWire returns the error object that a peer gets for err.
func toWire(err error) *transport.Error {
	e := asError(err)
	return &transport.Error{Code: e.Code, Message: e.Message, Data: e.Data}
}

// requestOf returns the request or notification that m is. If its params cannot be read,
// it returns an error as well, and a request without params.
func requestOf(m *transport.Message) (*Request, error) {
	req := newRequest()
	req.ID, req.Method = m.ID, m.Method
	if err := req.setParams(m.Params); err != nil {
		bare := newRequest()
		bare.ID, bare.Method = m.ID, m.Method
		return bare, err
	}
	return req, nil
}

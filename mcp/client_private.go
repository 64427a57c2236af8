// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"

	"github.com/go-psi/psi/mcp/transport"
)

// A privateWire makes the errors of a wire private: their text may contain addresses, keys
// or the standard error of a process, and a handler that makes a call may return its error.
type privateWire struct{ transport.Conn }

func (w privateWire) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	res, err := w.Conn.Call(ctx, m)
	return res, privateWireError(ctx, err)
}

func (w privateWire) Send(ctx context.Context, m *transport.Outgoing) error {
	return privateWireError(ctx, w.Conn.Send(ctx, m))
}

func (w privateWire) Err() error { return privateWireError(context.Background(), w.Conn.Err()) }

// Unwrap returns the wire of the transport.
func (w privateWire) Unwrap() transport.Conn { return w.Conn }

// peerOf returns what a wire says of the server; see [transport.Conn].
func peerOf(w transport.Conn) string {
	for {
		switch v := w.(type) {
		case interface{ Peer() string }:
			return v.Peer()
		case interface{ Unwrap() transport.Conn }:
			w = v.Unwrap()
		default:
			return ""
		}
	}
}

const notAvailable = "the server behind this one is not available"

// privateWireError returns the error of a wire as a PrivateError, unless it is an error
// response or the cause of the end of ctx.
func privateWireError(ctx context.Context, err error) error {
	if err == nil || codedError(err) != nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return &PrivateError{Public: notAvailable, Err: err}
}

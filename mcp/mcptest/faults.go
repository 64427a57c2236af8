// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp/transport"
)

// A Fault describes what goes wrong with a message on its way to the server. The zero Fault
// delivers the message normally.
type Fault struct {
	Delay     time.Duration // delay the message
	Drop      bool          // do not deliver the message; a request is never answered
	Duplicate bool          // deliver the message twice, with the same id
	Cut       bool          // close the connection first
	Err       error         // do not deliver the message, and return this error, such as mcp.ErrSessionLost
}

// Faulty wraps a transport and calls fault for every message sent to the server. n is the
// number of the message on its connection, starting at 1.
func Faulty(t transport.Transport, fault func(n int, m *transport.Outgoing) Fault) transport.Transport {
	if t == nil || fault == nil {
		panic("mcptest: Faulty: the transport and the function must not be nil")
	}
	return faultyTransport{t, fault}
}

type faultyTransport struct {
	next  transport.Transport
	fault func(n int, m *transport.Outgoing) Fault
}

func (t faultyTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	wire, err := t.next.Connect(ctx, receive)
	if err != nil {
		return nil, err
	}
	return &faultyWire{Conn: wire, fault: t.fault}, nil
}

type faultyWire struct {
	transport.Conn
	fault func(n int, m *transport.Outgoing) Fault
	n     atomic.Int64
}

// before applies the part of the fault that precedes delivery.
func (w *faultyWire) before(ctx context.Context, m *transport.Outgoing) (Fault, error) {
	f := w.fault(int(w.n.Add(1)), m)
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			return f, context.Cause(ctx)
		}
	}
	if f.Cut {
		_ = w.Close()
	}
	return f, f.Err
}

func (w *faultyWire) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	f, err := w.before(ctx, m)
	switch {
	case err != nil:
		return nil, err
	case f.Drop:
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-w.Done():
			return nil, w.Err()
		}
	case f.Duplicate:
		_ = w.Conn.Send(ctx, m) // the client ignores the response
	}
	return w.Conn.Call(ctx, m)
}

func (w *faultyWire) Send(ctx context.Context, m *transport.Outgoing) error {
	f, err := w.before(ctx, m)
	switch {
	case err != nil || f.Drop:
		return err
	case f.Duplicate:
		_ = w.Conn.Send(ctx, m)
	}
	return w.Conn.Send(ctx, m)
}

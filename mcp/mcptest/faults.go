// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp/transport"
)

// A Fault says what goes wrong with a message on its way to the server. The zero Fault
// delivers it.
type Fault struct {
	Delay     time.Duration // deliver it late
	Drop      bool          // do not deliver it; a request is never answered
	Duplicate bool          // deliver it twice, with the same id
	Cut       bool          // break the connection first
	Err       error         // do not deliver it, but fail with this error, such as mcp.ErrSessionLost
}

// Faulty wraps a transport and calls fault for every message to the server. n counts the
// messages of a connection from 1.
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

// Unwrap returns the wrapped wire; see [transport.Conn].
func (w *faultyWire) Unwrap() transport.Conn { return w.Conn }

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
		_ = w.Conn.Send(ctx, m) // its answer is ignored
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

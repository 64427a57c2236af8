// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A Fault says what goes wrong with a message on its way to the server. The zero Fault
// delivers it.
type Fault struct {
	Delay       time.Duration // deliver it late
	Drop        bool          // do not deliver it; a request is never answered
	Duplicate   bool          // deliver it twice, with the same id
	Cut         bool          // break the connection first
	LoseSession bool          // fail with mcp.ErrSessionLost
}

// Faulty wraps a transport and calls fault for every message to the server. n counts the
// messages of a connection from 1.
func Faulty(t mcp.Transport, fault func(n int, m *mcp.Envelope) Fault) mcp.Transport {
	return faultyTransport{t, fault}
}

type faultyTransport struct {
	next  mcp.Transport
	fault func(n int, m *mcp.Envelope) Fault
}

func (t faultyTransport) Connect(ctx context.Context, receive mcp.Receiver) (mcp.Wire, error) {
	wire, err := t.next.Connect(ctx, receive)
	if err != nil {
		return nil, err
	}
	return &faultyWire{Wire: wire, fault: t.fault}, nil
}

type faultyWire struct {
	mcp.Wire
	fault func(n int, m *mcp.Envelope) Fault
	n     atomic.Int64
}

// Unwrap returns the wrapped wire; see [mcp.Wire].
func (w *faultyWire) Unwrap() mcp.Wire { return w.Wire }

// before applies the part of the fault that precedes delivery.
func (w *faultyWire) before(ctx context.Context, m *mcp.Envelope) (Fault, error) {
	f := w.fault(int(w.n.Add(1)), m)
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			return f, context.Cause(ctx)
		}
	}
	switch {
	case f.Cut:
		_ = w.Close()
	case f.LoseSession:
		return f, mcp.ErrSessionLost
	}
	return f, nil
}

func (w *faultyWire) Call(ctx context.Context, m *mcp.Envelope) (*mcp.Response, error) {
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
		_ = w.Wire.Send(ctx, m) // its answer is ignored
	}
	return w.Wire.Call(ctx, m)
}

func (w *faultyWire) Send(ctx context.Context, m *mcp.Envelope) error {
	f, err := w.before(ctx, m)
	switch {
	case err != nil || f.Drop:
		return err
	case f.Duplicate:
		_ = w.Wire.Send(ctx, m)
	}
	return w.Wire.Send(ctx, m)
}

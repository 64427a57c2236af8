// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"testing"

	"github.com/go-psi/psi/mcp/transport"
)

// Check wraps a transport and checks every message in both directions against the
// specification, using the revision of the connection. A violation fails the test; the
// message is still delivered unchanged. [Connect], [Dial] and [Run] check every connection.
func Check(tb testing.TB, t transport.Transport) transport.Transport {
	if t == nil {
		panic("mcptest: the transport to check is nil")
	}
	return &checkedTransport{tb, t}
}

type checkedTransport struct {
	tb   testing.TB
	next transport.Transport
}

func (t *checkedTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	c := newChecker(t.tb)
	wire, err := t.next.Connect(ctx, func(m *transport.Message) {
		c.received(m)
		receive(m)
	})
	if err != nil {
		return nil, err
	}
	return &checkedWire{wire, c}, nil
}

type checkedWire struct {
	transport.Conn
	checker *checker
}

func (w *checkedWire) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	call := w.checker.called(m.Version, m.Body)
	r, err := w.Conn.Call(ctx, m)
	w.checker.returned(call, r)
	return r, err
}

func (w *checkedWire) Send(ctx context.Context, m *transport.Outgoing) error {
	w.checker.sent(m.Version, m.Body)
	err := w.Conn.Send(ctx, m)
	if err != nil {
		w.checker.unsent(m.ID)
	}
	return err
}

// Close stops checking before it closes the wire, because the test may have ended when the
// last messages arrive.
func (w *checkedWire) Close() error {
	w.checker.stop()
	return w.Conn.Close()
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"sync"

	"github.com/go-psi/psi/mcp/transport"
)

// tracedTransport opens connections whose messages are traced.
type tracedTransport struct{ transport.Transport }

func (t tracedTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	w := &tracedWire{trace: ClientTraceFromContext(ctx)}
	wire, err := t.Transport.Connect(ctx, func(m transport.Message, about ID) {
		if t := w.traceAbout(about); t != nil && t.WireRead != nil && m.Method != "" {
			t.WireRead(wireInfo(&m, about))
		}
		receive(m, about)
	})
	if err != nil {
		return nil, err
	}
	w.Conn = wire
	return w, nil
}

// tracedWire is a connection of a transport whose messages are traced.
type tracedWire struct {
	transport.Conn
	trace *ClientTrace // of the connection; nil if it has none

	mu    sync.Mutex
	calls map[ID]*ClientTrace // that have a trace, in flight
}

// Unwrap returns the connection of the transport; see [transport.Conn].
func (w *tracedWire) Unwrap() transport.Conn { return w.Conn }

func (w *tracedWire) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	ctx, t := inheritTrace(ctx, w.trace)
	if t == nil {
		return w.Conn.Call(ctx, m)
	}
	w.addCall(m.ID, t)
	defer w.removeCall(m.ID)
	trace(t.WireWrite, WireInfo{ID: m.ID, Method: m.Method, Message: m.Body})
	r, err := w.Conn.Call(ctx, m)
	if err == nil && t.WireRead != nil {
		t.WireRead(wireInfo(r, ID{}))
	}
	return r, err
}

func (w *tracedWire) Send(ctx context.Context, m *transport.Outgoing) error {
	ctx, t := inheritTrace(ctx, w.trace)
	if t != nil {
		trace(t.WireWrite, WireInfo{ID: m.ID, Method: m.Method, Message: m.Body})
	}
	return w.Conn.Send(ctx, m)
}

// inheritTrace returns the trace of a context or, if it has none, that of the connection, and
// a context that has it. The trace is nil if there is none.
func inheritTrace(ctx context.Context, conn *ClientTrace) (context.Context, *ClientTrace) {
	if t := ClientTraceFromContext(ctx); t != nil || conn == nil {
		return ctx, t
	}
	return WithClientTrace(ctx, conn), conn
}

func (w *tracedWire) addCall(id ID, t *ClientTrace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = map[ID]*ClientTrace{}
	}
	w.calls[id] = t
}

func (w *tracedWire) removeCall(id ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, id)
}

// traceAbout returns the trace of the call that a message is about or, if it has none, that
// of the connection.
func (w *tracedWire) traceAbout(about ID) *ClientTrace {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.calls[about]; t != nil {
		return t
	}
	return w.trace
}

// wireInfo describes a message of the server.
func wireInfo(m *transport.Message, about ID) WireInfo {
	info := WireInfo{ID: m.ID, Method: m.Method, About: about}
	switch {
	case m.Err != nil:
		info.Err = m.Err
	case m.Error != nil:
		info.Message = transport.AppendError(nil, m.ID, m.Error)
	case m.Method == "":
		info.Message = transport.AppendResult(nil, m.ID, m.Result)
	default:
		info.Message = transport.AppendRequest(nil, m.ID, m.Method, m.Params)
	}
	return info
}

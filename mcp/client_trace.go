// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"sync"

	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// noTrace is the trace of contexts without one.
var noTrace = new(mcptrace.ClientTrace)

// traceOf returns the trace of a context, or noTrace if it has none.
func traceOf(ctx context.Context) *mcptrace.ClientTrace {
	if t := mcptrace.ClientTraceFromContext(ctx); t != nil {
		return t
	}
	return noTrace
}

// trace calls a function of a trace, unless the function is nil.
func trace[T any](call func(T), info T) {
	if call != nil {
		call(info)
	}
}

// tracedTransport opens connections whose messages are traced. One wrapper traces every
// transport, below the translator, which sends messages of its own. So WireWrite is called
// before the transport writes.
type tracedTransport struct{ transport.Transport }

func (t tracedTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	w := &tracedWire{trace: mcptrace.ClientTraceFromContext(ctx)}
	wire, err := t.Transport.Connect(ctx, func(m *transport.Message) {
		of := m.About
		if m.IsResponse() { // received here only if unreadable; its call fails
			of = m.ID
		}
		if t := w.traceAbout(of); t != nil && t.WireRead != nil && (m.Method != "" || m.Err != nil) {
			t.WireRead(wireInfo(m))
		}
		receive(m)
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
	trace *mcptrace.ClientTrace // of the connection; nil if it has none

	mu    sync.Mutex
	calls map[ID]*mcptrace.ClientTrace // of calls in flight that have one
}

func (w *tracedWire) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	ctx, t := inheritTrace(ctx, w.trace)
	if t == nil {
		return w.Conn.Call(ctx, m)
	}
	w.addCall(m.ID, t)
	defer w.removeCall(m.ID)
	trace(t.WireWrite, mcptrace.WireInfo{ID: m.ID, Method: m.Method, Message: m.Body})
	r, err := w.Conn.Call(ctx, m)
	if err == nil && t.WireRead != nil {
		t.WireRead(wireInfo(r))
	}
	return r, err
}

func (w *tracedWire) Send(ctx context.Context, m *transport.Outgoing) error {
	ctx, t := inheritTrace(ctx, w.trace)
	if t != nil {
		trace(t.WireWrite, mcptrace.WireInfo{ID: m.ID, Method: m.Method, Message: m.Body})
	}
	return w.Conn.Send(ctx, m)
}

// inheritTrace returns the trace of ctx or, if it has none, the connection's trace conn,
// and a context that carries it. The trace is nil if there is neither. The context of Connect
// counts, because what a connection does by itself belongs to no call.
func inheritTrace(ctx context.Context, conn *mcptrace.ClientTrace) (context.Context, *mcptrace.ClientTrace) {
	if t := mcptrace.ClientTraceFromContext(ctx); t != nil || conn == nil {
		return ctx, t
	}
	return mcptrace.WithClientTrace(ctx, conn), conn
}

func (w *tracedWire) addCall(id ID, t *mcptrace.ClientTrace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = map[ID]*mcptrace.ClientTrace{}
	}
	w.calls[id] = t
}

func (w *tracedWire) removeCall(id ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, id)
}

// traceAbout returns the trace of the call that a message is about or, if the call has
// none, the trace of the connection.
func (w *tracedWire) traceAbout(about ID) *mcptrace.ClientTrace {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.calls[about]; t != nil {
		return t
	}
	return w.trace
}

// wireInfo describes a message from the server.
func wireInfo(m *transport.Message) mcptrace.WireInfo {
	info := mcptrace.WireInfo{ID: m.ID, Method: m.Method, About: m.About}
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

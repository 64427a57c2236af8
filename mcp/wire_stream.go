// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"sync"
	"time"
)

// StreamTransport makes a Transport of a function that opens a [Stream], such as
// one to a process or a socket.
func StreamTransport(open func(ctx context.Context) (Stream, error)) Transport {
	return &streamTransport{open}
}

type streamTransport struct {
	open func(ctx context.Context) (Stream, error)
}

func (t *streamTransport) Connect(ctx context.Context, receive Receiver) (Wire, error) {
	stream, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	return NewStreamWire(stream, receive), nil
}

// NewStreamWire makes a Wire of a stream, which it reads until it ends and closes
// when it is closed. Who reads calls receive: a goroutine of the wire or, if the
// stream is interruptible, also whoever waits for an answer.
func NewStreamWire(stream Stream, receive Receiver) Wire {
	w := newStreamWire(receive)
	w.write = func(ctx context.Context, m *Envelope) error { return stream.Write(ctx, m.Body) }
	w.close = stream.Close
	w.turns.begin(w, stream)
	return w
}

func newStreamWire(receive Receiver) *streamWire {
	w := &streamWire{receive: receive, waiting: map[ID]chan *Response{}, done: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	return w
}

// streamWire brings together calls and their answers.
type streamWire struct {
	write   func(ctx context.Context, m *Envelope) error
	close   func() error
	receive Receiver
	ctx     context.Context // of reading
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when nothing is read any more
	turns   turns         // to read; zero if nothing is

	mu      sync.Mutex
	waiting map[ID]chan *Response
	err     error // why it ended
}

// take delivers one message, or several, and reports whether a call has its answer now.
func (w *streamWire) take(data []byte) (answered bool) {
	for m := range Messages(data) {
		if w.takeOne(m) {
			answered = true
		}
	}
	return answered
}

// takeOne gives what is no response to the receiver, and also what could not be read:
// somebody should know.
func (w *streamWire) takeOne(m Message) (answered bool) {
	if m.Response == nil || m.Err != nil {
		w.receive(m, ID{})
	}
	return m.Response != nil && w.deliver(m.Response)
}

// deliver gives a response to the call that waits for it. An error without an id is that
// of the only call that waits, if there is one: its server could not read the id.
func (w *streamWire) deliver(r *Response) (answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.ID.IsZero() && r.Error != nil && len(w.waiting) == 1 {
		for id := range w.waiting {
			r.ID = id
		}
	}
	answer := w.waiting[r.ID]
	if answer == nil {
		return false
	}
	delete(w.waiting, r.ID)
	answer <- r
	return true
}

func (w *streamWire) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.cancel(w.err)
}

func (w *streamWire) Call(ctx context.Context, m *Envelope) (*Response, error) {
	answer := make(chan *Response, 1)
	if err := w.expect(m.ID, answer); err != nil {
		return nil, err
	}
	defer w.forget(m.ID)
	if err := w.Send(ctx, m); err != nil {
		return nil, err
	}
	turn := w.turns.free
	if m.Method == MethodListen {
		turn = nil // its answer is its end; others, who are in a hurry, would find somebody reading
	} else {
		w.turns.calls.Add(1)
		defer w.turns.calls.Add(-1)
	}
	for {
		select {
		case r := <-answer:
			return r, nil
		case <-ctx.Done():
			w.cancelCall(ctx, m)
			return nil, context.Cause(ctx)
		case <-w.ctx.Done(): // which is before done: a stream may be stuck
			return w.last(answer)
		case <-turn:
			w.turns.lead(ctx, answer)
			turn = nil // one of the others is ready
		}
	}
}

// last is the response that came just before the end, or why it ended.
func (w *streamWire) last(answer <-chan *Response) (*Response, error) {
	select {
	case r := <-answer:
		return r, nil
	default:
		return nil, w.Err()
	}
}

func (w *streamWire) expect(id ID, answer chan *Response) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.waiting[id] = answer
	return nil
}

func (w *streamWire) forget(id ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, id)
}

// cancelTime bounds how long a server that does not read keeps a caller who has
// given up.
const cancelTime = time.Second

// cancelCall tells the server, which may be gone. Nothing cancels initialize.
func (w *streamWire) cancelCall(ctx context.Context, m *Envelope) {
	if m.Method == legacyInitialize {
		return
	}
	params := mustMarshal(&CancelledParams{RequestID: m.ID, Reason: context.Cause(ctx).Error()})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	notice := &Envelope{Method: NotificationCancelled, Version: m.Version, Body: AppendNotification(nil, NotificationCancelled, params)}
	_ = w.write(ctx, notice)
}

func (w *streamWire) Send(ctx context.Context, m *Envelope) error {
	if w.ctx.Err() != nil {
		return w.Err()
	}
	return w.write(ctx, m)
}

func (w *streamWire) Close() error {
	w.end(ErrClosed)
	if w.turns.free != nil {
		go w.turns.readOn() // or nobody finds the end who does not call
	}
	return w.close()
}

func (w *streamWire) Done() <-chan struct{} { return w.done }

// Ordered is what [Wire] says of it.
func (*streamWire) Ordered() bool { return true }

func (w *streamWire) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"sync"
	"time"
)

// StreamTransport returns a Transport that connects with a function that opens a
// [Stream], for example to a process or a socket.
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

// NewStreamWire returns a Wire on a stream. A goroutine of the wire reads the stream
// until it ends, and calls receive. Closing the wire closes the stream.
func NewStreamWire(stream Stream, receive Receiver) Wire {
	w := newStreamWire(receive)
	w.write = func(ctx context.Context, m *Envelope) error { return stream.Write(ctx, m.Body) }
	w.close = stream.Close
	go w.readStream(stream)
	return w
}

func newStreamWire(receive Receiver) *streamWire {
	w := &streamWire{receive: receive, waiting: map[ID]chan *Response{}, done: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	return w
}

// streamWire matches the responses on a stream to the calls that wait for them.
type streamWire struct {
	write   func(ctx context.Context, m *Envelope) error
	close   func() error
	receive Receiver
	ctx     context.Context // of reading; it ends when the wire fails or is closed
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when nothing is read any more

	mu      sync.Mutex
	waiting map[ID]chan *Response
	err     error // why the wire ended
}

// readStream delivers the messages of a stream until it ends.
func (w *streamWire) readStream(stream Stream) {
	defer close(w.done)
	for {
		data, err := stream.Read(w.ctx)
		switch _, isMessageError := errors.AsType[*Error](err); {
		case err == nil:
			w.deliver(data)
		case isMessageError:
			w.deliverMessage(unreadable(Message{}, err))
		default:
			w.fail(err)
			return
		}
	}
}

// deliver delivers one message or the messages of a batch.
func (w *streamWire) deliver(data []byte) {
	for m := range Messages(data) {
		w.deliverMessage(m)
	}
}

// deliverMessage passes responses to their calls and everything else to the receiver.
// Unreadable messages go to the receiver as well, so that they are logged.
func (w *streamWire) deliverMessage(m Message) {
	if m.Response == nil || m.Err != nil {
		w.receive(m, ID{})
	}
	if m.Response != nil {
		w.deliverResponse(m.Response)
	}
}

// deliverResponse passes a response to the call that waits for it. A server that cannot
// read the ID of a request answers with an error without an ID: that error belongs to
// the pending call if there is only one.
func (w *streamWire) deliverResponse(r *Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.ID.IsZero() && r.Error != nil && len(w.waiting) == 1 {
		for id := range w.waiting {
			r.ID = id
		}
	}
	if answer := w.waiting[r.ID]; answer != nil {
		delete(w.waiting, r.ID)
		answer <- r
	}
}

// fail ends all pending calls with err, which only the first call of fail sets.
func (w *streamWire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.cancel(w.err)
}

// Call implements [Wire]. It returns when the wire is closed even if the stream does
// not: reading from a terminal, for example, cannot be interrupted.
func (w *streamWire) Call(ctx context.Context, m *Envelope) (*Response, error) {
	answer := make(chan *Response, 1)
	if err := w.expect(m.ID, answer); err != nil {
		return nil, err
	}
	defer w.forget(m.ID)
	if err := w.Send(ctx, m); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		w.cancelCall(ctx, m)
		return nil, context.Cause(ctx)
	case <-w.ctx.Done():
		return w.lastResponse(answer)
	}
}

// lastResponse returns the response that came just before the wire ended, or the reason
// why it ended.
func (w *streamWire) lastResponse(answer <-chan *Response) (*Response, error) {
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

// cancelTime bounds how long a caller that has given up waits for a server that does
// not read.
const cancelTime = time.Second

// cancelCall sends notifications/cancelled for a call. The server may be gone, so errors
// are ignored. An initialize request must not be cancelled (basic/utilities/cancellation).
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
	w.fail(ErrClosed)
	return w.close()
}

func (w *streamWire) Done() <-chan struct{} { return w.done }

// Ordered reports that the wire is a byte stream; see [Wire].
func (*streamWire) Ordered() bool { return true }

func (w *streamWire) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

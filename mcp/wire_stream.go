// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/go-psi/psi/internal/pending"
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
	w := &streamWire{receive: receive, done: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	return w
}

// streamWire matches the responses on a stream to the calls that wait for them.
type streamWire struct {
	write   func(ctx context.Context, m *Envelope) error
	close   func() error
	receive Receiver
	calls   pending.Map[ID, *Response]
	ctx     context.Context // of reading; its cause is why the wire ended
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when nothing is read any more
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
			w.cancel(err)
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
	if id, ok := w.calls.Only(); ok && r.ID.IsZero() && r.Error != nil {
		r.ID = id
	}
	w.calls.Deliver(r.ID, r)
}

// Call implements [Wire]. It returns when the wire is closed even if the stream does
// not: reading from a terminal, for example, cannot be interrupted.
func (w *streamWire) Call(ctx context.Context, m *Envelope) (*Response, error) {
	response, remove := w.calls.Add(m.ID)
	defer remove()
	if err := w.Send(ctx, m); err != nil {
		return nil, err
	}
	select {
	case r := <-response:
		return r, nil
	case <-ctx.Done():
		w.cancelCall(ctx, m)
		return nil, context.Cause(ctx)
	case <-w.ctx.Done():
		return pending.ReceivedOr(response, w.Err())
	}
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
	w.cancel(ErrClosed)
	return w.close()
}

func (w *streamWire) Done() <-chan struct{} { return w.done }

// Ordered reports that the wire is a byte stream; see [Wire].
func (*streamWire) Ordered() bool { return true }

func (w *streamWire) Err() error { return context.Cause(w.ctx) }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/async"
)

// FromStream returns a Transport that calls open to open a [Stream] for each connection, for
// example to a process or a socket.
func FromStream(open func(ctx context.Context) (Stream, error)) Transport {
	if open == nil {
		panic("transport: FromStream: the function is nil")
	}
	return &streamTransport{open}
}

type streamTransport struct {
	open func(ctx context.Context) (Stream, error)
}

func (t *streamTransport) Connect(ctx context.Context, receive Receiver) (Conn, error) {
	stream, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	return NewConn(stream, receive), nil
}

// NewConn returns a Conn that uses stream. A goroutine of the Conn reads the stream until it
// ends, and calls receive. If receive is nil, messages other than responses are dropped.
// Closing the Conn closes the stream.
func NewConn(stream Stream, receive Receiver) Conn {
	if stream == nil {
		panic("transport: NewConn: the stream is nil")
	}
	if receive == nil {
		receive = func(*Message) {}
	}
	c := &streamConn{stream: stream, receive: receive, done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	go c.readStream()
	return c
}

// streamConn matches the responses on a stream to the calls that wait for them.
type streamConn struct {
	stream  Stream
	receive Receiver
	calls   async.Pending[ID, *Message]
	ctx     context.Context //nolint:containedctx // of reading; its cause is why the connection ended
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when readStream has returned
}

// readStream delivers the messages of the stream until it ends. Letting the waiting call read
// would save a switch of goroutines, but need turns, read deadlines and lines that outlive
// their reader.
func (c *streamConn) readStream() {
	defer close(c.done)
	for {
		data, err := c.stream.Read(c.ctx)
		switch _, isMessageError := errors.AsType[*MessageError](err); {
		case err == nil:
			for m := range Messages(data) {
				c.deliver(m)
			}
		case isMessageError:
			c.deliver(UnreadableMessage(err))
		default:
			c.cancel(err)
			return
		}
	}
}

// deliver passes responses to their calls and everything else to the receiver.
// Unreadable messages go to the receiver as well, so that they are logged.
func (c *streamConn) deliver(m Message) {
	if !m.IsResponse() || m.Err != nil {
		c.receive(&m)
	}
	if m.IsResponse() {
		c.deliverResponse(m)
	}
}

// deliverResponse passes a response to the call that waits for it. A server that cannot
// read the ID of a request answers with an error without an ID: that error belongs to
// the pending call if there is only one. Some servers write an integer as a string.
func (c *streamConn) deliverResponse(m Message) {
	if id, ok := c.calls.Only(); ok && m.ID.IsZero() && m.Error != nil {
		m.ID = id
	}
	if c.calls.Deliver(m.ID, &m) {
		return
	}
	if id, ok := ParseID([]byte(strings.Trim(m.ID.String(), `"`))); ok {
		m.ID = id
		c.calls.Deliver(id, &m)
	}
}

// Call implements [Conn]. It returns when the connection is closed, even if a Read of the
// stream does not: reading from a terminal, for example, cannot be interrupted.
func (c *streamConn) Call(ctx context.Context, m *Outgoing) (*Message, error) {
	response, remove := c.calls.Add(m.ID)
	defer remove()
	if err := c.Send(ctx, m); err != nil {
		if ctx.Err() != nil { // a stream may still write what its writer has given up
			c.cancelCall(ctx, m)
		}
		return nil, err
	}
	select {
	case r := <-response:
		return r.Response()
	case <-ctx.Done():
		c.cancelCall(ctx, m)
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		r, err := async.ReceivedOr(response, c.Err())
		if err != nil {
			return nil, err
		}
		return r.Response()
	}
}

// cancelTime limits how long a cancelled call waits for a server that does not read.
const cancelTime = time.Second

// cancelCall sends notifications/cancelled for a call. The server may be gone, so errors
// are ignored.
func (c *streamConn) cancelCall(ctx context.Context, m *Outgoing) {
	if !mayBeCancelled(m.Method) {
		return
	}
	reason := context.Cause(ctx).Error()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	_ = c.stream.Write(ctx, AppendCancelled(nil, m.ID, reason))
}

func (c *streamConn) Send(ctx context.Context, m *Outgoing) error {
	if c.ctx.Err() != nil {
		return c.Err()
	}
	return c.stream.Write(ctx, m.Body)
}

func (c *streamConn) Close() error {
	c.cancel(ErrClosed)
	return c.stream.Close()
}

func (c *streamConn) Done() <-chan struct{} { return c.done }

// Info implements [Conn]. A [Stream] may have a method Peer() string.
func (c *streamConn) Info() Info {
	info := Info{Ordered: true}
	if s, ok := c.stream.(interface{ Peer() string }); ok {
		info.Peer = s.Peer()
	}
	return info
}

func (c *streamConn) Err() error { return context.Cause(c.ctx) }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package queue

import (
	"context"
	"sync"

	"github.com/go-psi/psi/mcp/transport"
)

// NewTransport returns the client's side: calls go to the workers that serve a subject.
func NewTransport(b *Broker, subject string) transport.Transport { return &dialer{b, subject} }

type dialer struct {
	broker  *Broker
	subject string
}

// Connect implements transport.Transport.
func (d *dialer) Connect(_ context.Context, receive transport.Receiver) (transport.Conn, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &conn{dialer: d, receive: receive, ctx: ctx, cancel: cancel}, nil
}

// A conn is a connection to the workers. It keeps nothing but the calls that wait.
type conn struct {
	*dialer

	ctx    context.Context //nolint:containedctx // done when the connection is closed
	cancel context.CancelCauseFunc

	receiving sync.Mutex // the receiver is not called concurrently
	receive   transport.Receiver
}

// Call implements transport.Conn.
func (c *conn) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	inbox, answered := c.broker.inbox(), make(chan *transport.Message, 1)
	stop := c.broker.Subscribe(inbox, func(d Delivery) {
		got, err := transport.ParseMessage(d.Data)
		if err != nil {
			got = transport.UnreadableMessage(err)
		}
		if got.IsResponse() {
			answered <- &got
			return
		}
		got.About = m.ID
		c.receiving.Lock()
		defer c.receiving.Unlock()
		c.receive(&got)
	})
	defer stop()
	c.broker.Publish(c.subject, Delivery{inbox, m.Body})
	select {
	case got := <-answered:
		return got.Response()
	case <-ctx.Done():
		c.broker.Publish(c.subject+".cancel", Delivery{Reply: inbox})
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		c.broker.Publish(c.subject+".cancel", Delivery{Reply: inbox})
		return nil, transport.ErrClosed
	}
}

// Send implements transport.Conn.
func (c *conn) Send(_ context.Context, m *transport.Outgoing) error {
	if c.ctx.Err() != nil {
		return transport.ErrClosed
	}
	c.broker.Publish(c.subject, Delivery{Data: m.Body})
	return nil
}

// Close implements transport.Conn.
func (c *conn) Close() error {
	c.cancel(transport.ErrClosed)
	return nil
}

// Done implements transport.Conn.
func (c *conn) Done() <-chan struct{} { return c.ctx.Done() }

// Err implements transport.Conn.
func (c *conn) Err() error { return context.Cause(c.ctx) }

// Info implements transport.Conn.
func (c *conn) Info() transport.Info { return transport.Info{Peer: "the workers of " + c.subject} }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// InProcess is a Transport to a handler in this process. Messages go straight to the
// server of a connection and back; requests are served, each by a goroutine of its
// own, until they are done or the connection is closed, which cancels them.
func InProcess(h Handler) Transport { return &inProcess{h} }

type inProcess struct{ handler Handler }

func (t *inProcess) Connect(_ context.Context, receive Receiver) (Wire, error) {
	w := newStreamWire(receive)
	server := newStreamServer(context.Background(), t.handler, &toClient{wire: w}, &StreamOptions{DrainTimeout: -1}) // it lasts as long as the connection
	inbox := &inProcessInbox{server: server, requests: make(chan arrival), closed: w.done}
	w.write = inbox.take
	w.close = sync.OnceValue(func() error {
		server.drain()
		close(w.done)
		return nil
	})
	return w, nil
}

// inProcessInbox takes the messages of the client in the same process.
type inProcessInbox struct {
	server   *streamServer
	requests chan arrival // to a goroutine that has nothing to do
	closed   <-chan struct{}
	idle     atomic.Int32
}

// take takes a message. The client does not wait for requests here, and for
// everything else, whose order counts, until it is dealt with.
func (b *inProcessInbox) take(ctx context.Context, m *Envelope) error {
	a := b.server.take(m.Body)
	if m.Method != "" && !m.ID.IsZero() {
		select {
		case b.requests <- a:
		default:
			go b.serve(a)
		}
		return nil
	}
	dealtWith := make(chan struct{})
	resign := sync.OnceFunc(func() { close(dealtWith) })
	go func() {
		defer resign()
		a.serve(resign)
	}()
	var enough <-chan time.Time
	if a.opens {
		enough = time.After(a.patience())
	}
	select {
	case <-dealtWith:
		return nil
	case <-enough:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxIdle is how many goroutines wait for requests. It is more than a new goroutine
// costs to make, but less than it costs to grow its stack.
const maxIdle = 4

// serve serves a request, and then others for as long as there are some.
func (b *inProcessInbox) serve(a arrival) {
	for {
		a.serve(func() {})
		if b.idle.Add(1) > maxIdle {
			b.idle.Add(-1)
			return
		}
		select {
		case a = <-b.requests:
			b.idle.Add(-1)
		case <-b.closed:
			return
		}
	}
}

// toClient is the stream on which a server says something to the client in the same
// process. Nothing is read from it.
type toClient struct {
	wire *streamWire
	turn sync.Mutex // the client takes one message after the other
}

func (c *toClient) Write(_ context.Context, message []byte) error {
	if c.wire.ctx.Err() != nil {
		return ErrClosed
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	c.wire.take(bytes.Clone(message))
	return nil
}

// Read implements [Stream].
func (c *toClient) Read(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Close implements [Stream].
func (c *toClient) Close() error { return nil }

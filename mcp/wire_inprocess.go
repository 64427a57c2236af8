// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// InProcess returns a Transport to a handler in this process. Messages are passed
// directly between the client and the server of a connection. Each request is served by
// a goroutine of its own, until it is done or the connection is closed, which cancels it.
func InProcess(h Handler) Transport { return &inProcess{h} }

type inProcess struct{ handler Handler }

func (t *inProcess) Connect(_ context.Context, receive Receiver) (Wire, error) {
	w := newStreamWire(receive)
	server := newStreamServer(context.Background(), t.handler, &toClient{wire: w}, &StreamOptions{DrainTimeout: -1}) // it lasts as long as the connection
	w.write = func(ctx context.Context, m *Envelope) error { return sendInProcess(ctx, server, m) }
	w.close = sync.OnceValue(func() error {
		server.drain()
		close(w.done)
		return nil
	})
	return w, nil
}

// sendInProcess passes a message of the client to the server in the same process. It
// returns at once for requests. For everything else the order counts, so it waits until
// the message has been processed.
func sendInProcess(ctx context.Context, server *streamServer, m *Envelope) error {
	a := server.take(m.Body)
	if m.Method != "" && !m.ID.IsZero() {
		go a.serve(func() {})
		return nil
	}
	processed := make(chan struct{})
	resign := sync.OnceFunc(func() { close(processed) })
	go func() {
		defer resign()
		a.serve(resign)
	}()
	var timeout <-chan time.Time
	if a.opens {
		timeout = time.After(a.patience())
	}
	select {
	case <-processed:
		return nil
	case <-timeout:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// toClient is the stream on which a server sends messages to the client in the same
// process. Nothing is read from it.
type toClient struct {
	wire *streamWire
	mu   sync.Mutex // held while a message is delivered
}

func (c *toClient) Write(_ context.Context, message []byte) error {
	if c.wire.ctx.Err() != nil {
		return ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wire.deliver(bytes.Clone(message))
	return nil
}

// Read implements [Stream].
func (c *toClient) Read(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Close implements [Stream].
func (c *toClient) Close() error { return nil }

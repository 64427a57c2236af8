// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
)

// A Conn is a connection to a server. It is a Handler: to call it is to send the
// request, whatever era the server speaks; mounted on a [Mux], it makes a gateway.
// It is safe for concurrent use.
type Conn struct {
	client *Client
	wire   Wire
	era    clientEra
	ids    atomic.Int64
	notes  *noteQueue
	server atomic.Pointer[DiscoverResult]
	tools  toolPlans

	underWay underWay

	ctx    context.Context // of what goes on in the background
	cancel context.CancelCauseFunc
	close  sync.Once
	lost   atomic.Bool // closed because the server did not answer

	mu       sync.Mutex
	chain    Handler // middleware, then rounds
	use      []Middleware
	roots    []Root
	progress map[ID]*progressSink
	subs     map[ID]following
	clocks   map[*callClock]struct{} // of the calls that are bounded
}

// clientEra is what differs between eras on the client's side: how a request of
// the core goes over the wire.
type clientEra interface {
	version() string
	// pingMethod is the method of a request that any server of the era answers
	// quickly; ping sends it. Any answer is none of its errors.
	pingMethod() string
	ping(ctx context.Context) error
	send(ctx context.Context, req *Request) (Result, error)
	listen(ctx context.Context, req *Request) (Result, error)
	// received takes what the server says of its own accord.
	received(m Message, about ID)
	rootsChanged(ctx context.Context) error
	// ended is told that the connection closes.
	ended()
}

func newConn(c *Client) *Conn {
	conn := &Conn{
		client: c, roots: append([]Root(nil), c.opts.Roots...),
		progress: map[ID]*progressSink{},
		subs:     map[ID]following{},
		clocks:   map[*callClock]struct{}{},
	}
	conn.ctx, conn.cancel = context.WithCancelCause(context.Background())
	conn.notes = newNoteQueue(conn)
	conn.chain = HandlerFunc(conn.rounds)
	return conn
}

// open connects the wire. Messages may come before it returns.
func (c *Conn) open(ctx context.Context, t Transport, era clientEra) error {
	c.era = era
	wire, err := t.Connect(ctx, era.received)
	if err != nil {
		c.cancel(err)
		c.notes.close()
		return openError{err}
	}
	c.wire = wire
	return nil
}

// ServeMCP implements [Handler]: it sends the request to the server, under an id of
// its own, and returns what the server answered. Members of the params that this
// package does not know, and of the result, pass unchanged. Progress goes to the
// sender of the request. A request that was received, rather than made here, is
// sent with the capabilities of its sender, and what this client has no function
// to answer becomes the sender's question.
//
// An error of the server passes unchanged. Any other, of which the text may have
// addresses, keys or the last words of a process in it, becomes an internal error that
// says only that the server is not available; its Cause has the rest, for logs and
// middleware. The methods of Conn, which a program calls for itself, return it whole.
func (c *Conn) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	res, err := c.serve(ctx, req)
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	return res, nil
}

// serve sends a request through the middleware of the connection.
func (c *Conn) serve(ctx context.Context, req *Request) (Result, error) {
	c.mu.Lock()
	chain := c.chain
	c.mu.Unlock()
	ctx, stop := c.bounded(ctx, req.Method)
	defer stop()
	return chain.ServeMCP(contextWithRequest(ctx, req), req)
}

// Use adds middleware around the requests that this connection sends, the first
// added outermost. A call that the server asks about is one request to it.
func (c *Conn) Use(mw ...Middleware) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use = append(c.use, mw...)
	c.chain = Chain(HandlerFunc(c.rounds), c.use...)
}

// Version is the protocol version that is spoken.
func (c *Conn) Version() string { return c.era.version() }

// Server is what the server said of itself when the connection was made:
// capabilities, instructions and, in its Meta, its identity.
func (c *Conn) Server() *DiscoverResult { return c.server.Load() }

// ServerInfo is the identity of the server, nil if it did not say; nothing may
// depend on it.
func (c *Conn) ServerInfo() *Implementation {
	var info Implementation
	if !c.Server().Meta.Get(MetaServerInfo, &info) {
		return nil
	}
	return &info
}

// Close ends the connection. Calls that wait fail with [ErrClosed]. It returns
// within the bound of the transport, also from inside a callback.
func (c *Conn) Close() error {
	var err error
	c.close.Do(func() {
		c.cancel(ErrClosed)
		c.era.ended()
		err = c.wire.Close()
		c.notes.close()
	})
	return err
}

// Wait waits until the connection has ended and returns why: nil after Close,
// [ErrNoAnswer] if the server did not give a sign of life.
func (c *Conn) Wait() error {
	<-c.wire.Done()
	if c.lost.Load() {
		return ErrNoAnswer
	}
	if err := c.wire.Err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

func (c *Conn) nextID() ID { return ID{strconv.FormatInt(c.ids.Add(1), 10)} }

// exchange sends one request and decodes the answer.
func (c *Conn) exchange(ctx context.Context, req *Request, e *Envelope) (Result, error) {
	c.underWay.begin(e.ID, req)
	r, err := c.wire.Call(ctx, e)
	c.underWay.end(e.ID, err == nil)
	if err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, r.Error
	}
	res, err := decodeResult(req.Method, r.Result)
	if err != nil {
		return nil, fmt.Errorf("mcp: the answer to %s: %w", req.Method, err)
	}
	return res, nil
}

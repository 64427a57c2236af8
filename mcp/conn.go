// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// A Conn is a connection to a server. It is a Handler: to call it is to send the
// request, whatever era the server speaks; mounted on a [Mux], it makes a gateway.
// It is safe for concurrent use.
type Conn struct {
	client *Client
	wire   Wire      // set before anything is received
	era    clientEra // settled before the connection is anybody's
	ids    atomic.Int64
	notes  *serialQueue
	server atomic.Pointer[DiscoverResult]
	tools  toolPlans

	underWay underWay

	ctx    context.Context // of what goes on in the background
	cancel context.CancelCauseFunc
	close  sync.Once
	lost   atomic.Bool // closed because the server did not answer

	replaced <-chan struct{} // closed when the connection that this one stands for is; may be nil

	gate    sync.Mutex // held while a message is received
	early   []func()   // what was received before the wire was known
	strange int        // messages that were dropped

	mu         sync.Mutex
	chain      Handler // middleware, then rounds
	use        []Middleware
	roots      []Root
	listeners  map[ID]*callListener
	forwarders map[ID]*forwarder       // by the id of the subscription at the server
	clocks     map[*callClock]struct{} // of the calls that are bounded
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
	// received takes what the server says of its own accord, unreadable a request of it
	// that could not be read. Both return soon.
	received(m Message, about ID)
	unreadable(m Message)
	rootsChanged(ctx context.Context) error
	// ended is told that the connection closes.
	ended()
}

func newConn(c *Client) *Conn {
	conn := &Conn{
		client: c, roots: append([]Root(nil), c.opts.Roots...),
		listeners:  map[ID]*callListener{},
		forwarders: map[ID]*forwarder{},
		clocks:     map[*callClock]struct{}{},
	}
	conn.ctx, conn.cancel = context.WithCancelCause(context.Background())
	conn.notes = newNoteQueue(conn, func() {
		c.opts.Logger.Warn("mcp: notifications are dropped: the client's functions are too slow", "waiting", maxNotes, "bytes", maxNoteBytes)
	})
	conn.notes.held = true // until Connect returns: they get the connection
	conn.chain = HandlerFunc(conn.rounds)
	return conn
}

// maxEarly is how many messages may come before a transport has returned its wire.
const maxEarly = 64

// open connects the wire. Messages may come before it is known, and wait until then.
func (c *Conn) open(ctx context.Context, t Transport, era clientEra) error {
	c.era = era
	wire, err := t.Connect(ctx, c.receive)
	if err != nil {
		c.cancel(err)
		c.notes.close()
		return err
	}
	c.gate.Lock()
	defer c.gate.Unlock()
	c.wire = wire
	for _, take := range c.early {
		take()
	}
	c.early = nil
	return nil
}

// receive is the Receiver of the connection.
func (c *Conn) receive(m Message, about ID) {
	c.gate.Lock()
	defer c.gate.Unlock()
	switch {
	case c.wire != nil:
		c.take(m, about)
	case len(c.early) < maxEarly:
		c.early = append(c.early, func() { c.take(m, about) })
	default:
		c.dropped("the server said too much before it was connected to")
	}
}

// take takes a message. What could not be read is known to the caller if it is an answer,
// and to the server if it is a request.
func (c *Conn) take(m Message, about ID) {
	if m.Err == nil {
		c.era.received(m, about)
		return
	}
	c.dropped("it could not be read", "id", excerpt(m.ID.String()), "error", excerpt(m.Err.Message))
	if m.Request != nil && !m.Request.IsNotification() {
		c.era.unreadable(m)
	}
}

// chatty is how many messages that are dropped are logged one by one. Of more, every
// second, fourth and so on is: a server must not fill the disk of its client.
const chatty = 16

// dropped logs a message that is dropped. It is called while one is received.
func (c *Conn) dropped(why string, args ...any) {
	c.strange++
	if n := c.strange; n <= chatty || n&(n-1) == 0 {
		c.client.opts.Logger.Warn("mcp: a message of the server was dropped: "+why, append(args, "dropped", n)...)
	}
}

// excerpt is the beginning of what a server wrote.
func excerpt(s string) string { return s[:min(len(s), 200)] }

// settle decides the era.
func (c *Conn) settle(era clientEra) {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.era = era
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
		if c.replaced != nil {
			<-c.replaced
		}
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

func (c *Conn) nextID() ID { return IntID(c.ids.Add(1)) }

// roundTrip sends one request and decodes the response.
func (c *Conn) roundTrip(ctx context.Context, req *Request, e *Envelope) (Result, error) {
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

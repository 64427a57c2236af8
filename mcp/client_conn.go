// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp/transport"
)

// A Conn is a connection to a server. It is a Handler: serving a request means sending it
// to the server, whatever era the server speaks. Mounted on a [Mux], it makes a gateway.
// It is safe for concurrent use.
//
// Lock order: receiving is held while a message is handled and is acquired first. The locks
// mu and those of notes, tools and inFlight are leaves: none is acquired under another.
type Conn struct {
	client *Client
	wire   transport.Conn // set under receiving, before the first message is handled
	era    clientEra      // set before Connect returns
	ids    atomic.Int64
	notes  *serialQueue // calls of the client's functions
	server atomic.Pointer[DiscoverResult]
	tools  toolPlans

	inFlight callsInFlight

	ctx      context.Context // of background work; ends when the connection is closed
	cancel   context.CancelCauseFunc
	close    sync.Once
	noAnswer atomic.Bool // closed because the server did not answer

	predecessor <-chan struct{} // closed when the connection that this one replaces has ended; may be nil

	receiving sync.Mutex // held while a message is handled
	early     []func()   // handles messages that came before wire was set
	dropped   int        // messages

	mu         sync.Mutex
	chain      Handler // middleware, then sendAndAnswer
	use        []Middleware
	roots      []Root
	listeners  map[ID]*callListener
	forwarders map[ID]*forwarder             // by the ID of the subscription at the server
	clocks     map[*callclock.Clock]struct{} // of the calls that have a timeout
}

// A clientEra is how a client speaks with servers of one era.
type clientEra interface {
	version() string
	// pingMethod is the method of a request that every server of the era answers quickly,
	// and ping sends it. Any response, even an error, counts as an answer.
	pingMethod() string
	ping(ctx context.Context) error
	send(ctx context.Context, req *Request) (Result, error)
	listen(ctx context.Context, req *Request) (Result, error)
	// receive handles a message that is not a response, and refuse a request that could
	// not be read. They must not block.
	receive(m transport.Message, about ID)
	refuse(m transport.Message)
	rootsChanged(ctx context.Context) error
	close()
}

func newConn(c *Client) *Conn {
	conn := &Conn{
		client: c, roots: append([]Root(nil), c.opts.Roots...),
		listeners:  map[ID]*callListener{},
		forwarders: map[ID]*forwarder{},
		clocks:     map[*callclock.Clock]struct{}{},
	}
	conn.ctx, conn.cancel = context.WithCancelCause(context.Background())
	conn.notes = newNoteQueue(conn)
	conn.chain = HandlerFunc(conn.sendAndAnswer)
	return conn
}

// maxEarly bounds how many messages may come before Transport.Connect has returned the
// wire.
const maxEarly = 64

// open connects the wire.
func (c *Conn) open(ctx context.Context, t transport.Transport, era clientEra) error {
	c.era = era
	wire, err := t.Connect(ctx, c.receive)
	if err != nil {
		c.cancel(err)
		c.notes.close()
		return err
	}
	c.receiving.Lock()
	defer c.receiving.Unlock()
	c.wire = wire
	for _, handle := range c.early {
		handle()
	}
	c.early = nil
	return nil
}

// receive is the [transport.Receiver] of the connection. Messages wait until the wire is known.
func (c *Conn) receive(m transport.Message, about ID) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	switch {
	case c.wire != nil:
		c.handleMessage(m, about)
	case len(c.early) < maxEarly:
		c.early = append(c.early, func() { c.handleMessage(m, about) })
	default:
		c.logDropped("the server said too much before it was connected to")
	}
}

// handleMessage handles a message. If it could not be read, the wire reports that to the
// caller of a response, and refuse to the sender of a request.
func (c *Conn) handleMessage(m transport.Message, about ID) {
	if m.Err == nil {
		c.era.receive(m, about)
		return
	}
	c.logDropped("it could not be read", "id", excerpt(m.ID.String()), "error", excerpt(m.Err.Error()))
	if m.IsRequest() {
		c.era.refuse(m)
	}
}

// notification returns the notification that m is. One whose params cannot be read is
// dropped, and nil is returned.
func (c *Conn) notification(m *transport.Message) *Request {
	note, err := requestOf(m)
	if err != nil {
		c.logDropped("it could not be read", "method", excerpt(m.Method), "error", excerpt(err.Error()))
		return nil
	}
	return note
}

// isMessageError reports whether a call failed because its response cannot be read.
func isMessageError(err error) bool {
	_, ok := errors.AsType[*transport.MessageError](err)
	return ok
}

// alwaysLogged is how many dropped messages are logged one by one. After that only every
// power of two is, so that a server cannot fill the disk of its client.
const alwaysLogged = 16

// logDropped logs that a message was dropped. The lock receiving must be held.
func (c *Conn) logDropped(why string, args ...any) {
	c.dropped++
	if isPowerOfTwo := c.dropped&(c.dropped-1) == 0; c.dropped <= alwaysLogged || isPowerOfTwo {
		c.client.opts.Logger.Warn("mcp: a message of the server was dropped: "+why, append(args, "dropped", c.dropped)...)
	}
}

// excerpt returns the beginning of a text of the server for a log.
func excerpt(s string) string { return s[:min(len(s), 200)] }

func (c *Conn) setEra(era clientEra) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	c.era = era
}

// ServeMCP implements [Handler]: it sends the request to the server, under an ID of its
// own, and returns the server's response. Members of the params and the result that this
// package does not know are passed on unchanged. Progress goes to the sender of the
// request. A request that was received, rather than made with [NewRequest], is sent with
// the capabilities of its sender; see [ClientOptions].Forward.
//
// An error response of the server is returned unchanged. Any other error becomes an
// internal error that says only that the server is not available, because its text may
// contain addresses, keys or the standard error of a process. Its Cause is the original
// error, for logs and middleware. The other methods of Conn return errors as they are.
func (c *Conn) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	res, err := c.serve(ctx, req)
	if err != nil {
		return nil, hideCause(ctx, err)
	}
	return res, nil
}

// serve sends a request through the middleware of the connection.
func (c *Conn) serve(ctx context.Context, req *Request) (Result, error) {
	c.mu.Lock()
	chain := c.chain
	c.mu.Unlock()
	ctx, stop := c.withCallTimeout(ctx, req.Method)
	defer stop()
	return chain.ServeMCP(contextWithRequest(ctx, req), req)
}

// hideCause returns the error for the sender of a request that was passed on.
func hideCause(ctx context.Context, err error) error {
	if _, coded := errors.AsType[*Error](err); coded {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return cause // the sender has cancelled the request, or this program has
	}
	hidden := &Error{Code: CodeInternalError, Message: "the server behind this one is not available", Cause: err}
	if _, timeout := errors.AsType[*TimeoutError](err); timeout {
		hidden.Message = "the server behind this one did not answer in time"
	}
	return hidden
}

// Use adds middleware around the requests that this connection sends. The first added is
// outermost. Middleware sees a call once, even if the server asks questions about it.
func (c *Conn) Use(mw ...Middleware) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use = append(c.use, mw...)
	c.chain = Chain(HandlerFunc(c.sendAndAnswer), c.use...)
}

// Version returns the negotiated protocol version.
func (c *Conn) Version() string { return c.era.version() }

// Server returns what the server reported about itself when the connection was opened:
// capabilities, instructions and, in its Meta, its identity.
func (c *Conn) Server() *DiscoverResult { return c.server.Load() }

// ServerInfo returns the identity of the server, nil if the server did not report any.
// Programs must not depend on it.
func (c *Conn) ServerInfo() *Implementation {
	var info Implementation
	if !c.Server().Meta.Get(MetaServerInfo, &info) {
		return nil
	}
	return &info
}

// Close closes the connection. Pending calls fail with [ErrClosed]. Close returns within
// a bound of the transport and may be called by the client's functions.
func (c *Conn) Close() error {
	var err error
	c.close.Do(func() {
		c.cancel(ErrClosed)
		c.era.close()
		err = c.wire.Close()
		c.notes.close()
		if c.predecessor != nil {
			<-c.predecessor
		}
	})
	return err
}

// Done returns a channel that is closed when the connection has ended. Err then returns
// the reason.
func (c *Conn) Done() <-chan struct{} { return c.wire.Done() }

// Err returns why the connection ended: nil if it was closed by [Conn.Close] or has not
// ended, [ErrNoAnswer] if the server did not answer pings.
func (c *Conn) Err() error {
	if c.noAnswer.Load() {
		return ErrNoAnswer
	}
	if err := c.wire.Err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// sleep waits until d has passed. It returns an error if ctx is done or the connection
// has ended before it starts to wait.
func (c *Conn) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-c.wire.Done():
		return c.wire.Err()
	default:
		return pause.For(ctx, d)
	}
}

func (c *Conn) nextID() ID { return IntID(c.ids.Add(1)) }

// roundTrip sends one request and decodes the response.
func (c *Conn) roundTrip(ctx context.Context, req *Request, e *transport.Outgoing) (Result, error) {
	c.inFlight.add(e.ID, req)
	r, err := c.wire.Call(ctx, e)
	c.inFlight.remove(e.ID, err == nil || isMessageError(err))
	if err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, fromWire(r.Error)
	}
	res, err := decodeResult(req.Method, r.Result)
	if err != nil {
		return nil, fmt.Errorf("mcp: the answer to %s: %w", req.Method, err)
	}
	return res, nil
}

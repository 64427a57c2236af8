// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/internal/inflight"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// A Conn is a connection to a server. It is a Handler: serving a request means sending it
// to the server, whatever revision the server speaks. Mounted on a [Mux], it makes a
// gateway. It is safe for concurrent use. [Client.Connect] makes it.
type Conn struct {
	// The locks mu and those of notes, tools and inFlight are leaves: none is acquired under
	// another.

	client  *Client
	wire    transport.Conn        // set before Connect returns; messages may come before
	legacy  translator            // the part of wire for the older revisions
	version string                // set before Connect returns
	trace   *mcptrace.ClientTrace // of what has none of its own; nil if there is none
	server  *DiscoverResult       // likewise
	ids     atomic.Int64
	notes   *serialQueue // calls of the client's functions
	tools   toolPlans

	sender   Handler // extensions, then sendAndAnswer
	inFlight inflight.Calls

	ctx      context.Context // of background work; ends when the connection is closed
	cancel   context.CancelCauseFunc
	close    sync.Once
	noAnswer atomic.Bool  // closed because the server did not answer
	dropped  atomic.Int64 // messages

	mu         sync.Mutex
	chain      Handler // middleware, then sender
	use        []Middleware
	roots      []Root
	listeners  map[ID]*callListener
	forwarders map[ID]*forwarder             // by the ID of the subscription at the server
	clocks     map[*callclock.Clock]struct{} // of the calls that have a timeout
}

// mustBeMade panics if no client made the connection.
func (c *Conn) mustBeMade() {
	made.Check(c != nil && c.client != nil, "mcp: a Conn", "Client.Connect")
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
	conn.notes.held = true // until Connect returns
	conn.sender = HandlerFunc(conn.sendAndAnswer)
	for _, x := range slices.Backward(c.opts.Extensions) {
		conn.sender = x.Middleware(conn)(conn.sender)
	}
	conn.chain = conn.sender
	return conn
}

// open connects the wire. The version is "" if it is not known.
func (c *Conn) open(ctx context.Context, t transport.Transport, version string) error {
	c.trace = mcptrace.ClientTraceFromContext(ctx)
	wire, err := c.connectTranslated(ctx, tracedTransport{t}, version)
	c.wire = privateWire{wire}
	if err != nil {
		c.cancel(err)
	}
	return privateWireError(ctx, err)
}

// receive is the [transport.Receiver] of the connection. Servers send notifications only. A
// message that could not be read is only logged: the wire reports an unreadable response to
// its caller.
func (c *Conn) receive(m transport.Message, about ID) {
	switch {
	case m.Err != nil:
		c.logDropped("it could not be read", "id", excerpt(m.ID.String()), "error", excerpt(m.Err.Error()))
	case m.Method == "":
	case m.IsNotification():
		if note := c.notification(&m); note != nil {
			c.receiveNotification(note, about)
		}
	default:
		c.logDropped("a server of this revision sends no requests", "method", excerpt(m.Method))
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

// alwaysLogged is how many dropped messages are logged one by one. After that only every
// power of two is, so that a server cannot fill the disk of its client.
const alwaysLogged = 16

// logDropped logs that a message was dropped.
func (c *Conn) logDropped(why string, args ...any) {
	n := c.dropped.Add(1)
	if isPowerOfTwo := n&(n-1) == 0; n <= alwaysLogged || isPowerOfTwo {
		c.client.opts.Logger.Warn("mcp: a message of the server was dropped: "+why, append(args, "dropped", n)...)
	}
}

// excerpt returns the beginning of a text of the server for a log.
func excerpt(s string) string { return s[:min(len(s), 200)] }

// ServeMCP implements [Handler]: it sends the request to the server, under an ID of its
// own, and returns the server's response. Members of the params and the result that this
// package does not know are passed on unchanged. Progress goes to the sender of the
// request. A request that was received, rather than made with [NewRequest], is sent with
// the capabilities of its sender; see [ClientOptions].Forward. The result of server/discover
// has the versions of this package, in which the sender is served, not those of the server.
//
// An error response of the server is returned unchanged. Any other error becomes an
// internal error that says only that the server is not available, because its text may
// contain addresses, keys or the standard error of a process. Its Cause is the original
// error, for logs and middleware. The other methods of Conn return the original error, in a
// [*PrivateError] if its text is not for others: a handler may return it.
func (c *Conn) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	res, err := c.serve(ctx, req)
	if err != nil {
		return nil, hideCause(ctx, err)
	}
	if d, ok := res.(*DiscoverResult); ok {
		served := *d
		served.SupportedVersions = ModernVersions() // the sender talks to this server, not to the one behind it
		return &served, nil
	}
	return res, nil
}

// serve sends a request through the middleware of the connection.
func (c *Conn) serve(ctx context.Context, req *Request) (Result, error) {
	c.mustBeMade()
	c.mu.Lock()
	chain := c.chain
	c.mu.Unlock()
	ctx, _ = inheritTrace(ctx, c.trace)
	ctx, stop := c.withCallTimeout(ctx, req.Method)
	defer stop()
	return chain.ServeMCP(contextWithRequest(ctx, req), req)
}

// hideCause returns the error for the sender of a request that was passed on.
func hideCause(ctx context.Context, err error) error {
	if codedError(err) != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return cause // the sender has cancelled the request, or this program has
	}
	hidden := &Error{Code: CodeInternalError, Message: notAvailable, Cause: err}
	if errors.Is(err, context.DeadlineExceeded) {
		hidden.Message = "the server behind this one did not answer in time"
	}
	return hidden
}

// Use adds middleware around the requests that this connection sends. The first added is
// outermost. Middleware sees a call once, even if the server asks questions about it.
func (c *Conn) Use(mw ...Middleware) {
	c.mustBeMade()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use = append(c.use, mw...)
	c.chain = chain(c.sender, c.use)
}

// Version returns the negotiated protocol version.
func (c *Conn) Version() string {
	c.mustBeMade()
	return c.version
}

// Server returns what the server reported about itself when the connection was opened:
// capabilities, instructions and, in its Meta, its identity.
func (c *Conn) Server() *DiscoverResult {
	c.mustBeMade()
	return c.server
}

// ServerInfo returns the identity of the server, nil if the server did not report any.
// Programs must not depend on it.
func (c *Conn) ServerInfo() *Implementation {
	c.mustBeMade()
	var info Implementation
	if !c.server.Meta.Get(MetaServerInfo, &info) {
		return nil
	}
	return &info
}

// Close closes the connection. Pending calls fail with [ErrClosed], and notifications that
// still wait for the client's functions are dropped. Close returns within a bound of the
// transport and may be called by the client's functions.
func (c *Conn) Close() error {
	c.mustBeMade()
	var err error
	c.close.Do(func() {
		c.cancel(ErrClosed)
		err = c.wire.Close()
		c.notes.close()
	})
	return err
}

// Done returns a channel that is closed when the connection has ended. Err then returns
// the reason.
func (c *Conn) Done() <-chan struct{} {
	c.mustBeMade()
	return c.wire.Done()
}

// Err returns why the connection ended: nil if it was closed by [Conn.Close] or has not
// ended, [ErrNoAnswer] if the server did not answer pings.
func (c *Conn) Err() error {
	c.mustBeMade()
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
	caller := inFlightCaller(req)
	if caller != (inflight.Caller{}) {
		ctx = inflight.NewContext(ctx, caller)
	}
	c.inFlight.Add(e.ID, caller)
	r, err := c.wire.Call(ctx, e)
	c.inFlight.Remove(e.ID, err)
	switch {
	case c.noAnswer.Load() && errors.Is(err, ErrClosed):
		return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	case err != nil:
		return nil, err
	}
	if r.Error != nil {
		return nil, fromWire(r.Error)
	}
	res, err := decodeResult(req.Method, r.Result, c.client.opts.Extensions...)
	if err != nil {
		return nil, fmt.Errorf("mcp: the answer to %s: %w", req.Method, err)
	}
	return res, nil
}

// inFlightCaller returns the caller on whose behalf a request is sent.
func inFlightCaller(req *Request) inflight.Caller {
	switch p := req.Principal; {
	case p != nil && (p.Issuer != "" || p.Subject != ""):
		return inflight.Caller{Issuer: p.Issuer, Subject: p.Subject}
	case req.sharedCall().session != nil:
		return inflight.Caller{Session: req.sharedCall().session}
	}
	return inflight.Caller{}
}

// A privateWire makes the errors of a wire private: their text may contain addresses, keys
// or the standard error of a process, and a handler that makes a call may return its error.
type privateWire struct{ transport.Conn }

func (w privateWire) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	res, err := w.Conn.Call(ctx, m)
	return res, privateWireError(ctx, err)
}

func (w privateWire) Send(ctx context.Context, m *transport.Outgoing) error {
	return privateWireError(ctx, w.Conn.Send(ctx, m))
}

func (w privateWire) Err() error { return privateWireError(context.Background(), w.Conn.Err()) }

// Unwrap returns the wire of the transport.
func (w privateWire) Unwrap() transport.Conn { return w.Conn }

// peerOf returns what a wire says of the server; see [transport.Conn].
func peerOf(w transport.Conn) string {
	for {
		switch v := w.(type) {
		case interface{ Peer() string }:
			return v.Peer()
		case interface{ Unwrap() transport.Conn }:
			w = v.Unwrap()
		default:
			return ""
		}
	}
}

const notAvailable = "the server behind this one is not available"

// privateWireError returns the error of a wire as a PrivateError, unless it is an error
// response or the cause of the end of ctx.
func privateWireError(ctx context.Context, err error) error {
	if err == nil || codedError(err) != nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return &PrivateError{Public: notAvailable, Err: err}
}

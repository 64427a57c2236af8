// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/internal/inflight"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// A Conn is a connection to a server, created by [Client.Connect]. It is a Handler that serves
// requests by sending them to the server, whatever revision the server speaks. Mounted on a
// [Mux], it acts as a gateway. Nil params mean the zero params. A Conn is safe for concurrent
// use.
type Conn struct {
	// mu and the locks of notes, tools and inFlight are leaf locks: none is acquired while
	// another is held.

	client  *Client
	wire    transport.Conn        // set before Connect returns; messages may arrive earlier
	legacy  translator            // translates older revisions; wire itself, unless the server is modern
	version string                // set before Connect returns
	trace   *mcptrace.ClientTrace // for calls without a trace of their own; may be nil
	server  *DiscoverResult       // set before Connect returns
	ids     atomic.Int64
	notes   *serialQueue // queued calls to the client's functions
	tools   toolPlans

	sender   Handler // extensions, then exchange
	inFlight inflight.Calls[*callListener]

	ctx      context.Context // for background work; cancelled when the connection is closed
	cancel   context.CancelCauseFunc
	close    sync.Once
	noAnswer atomic.Bool                      // closed because the server did not answer
	dropped  sparse.Counter                   // what was dropped of what the server sent
	listing  async.Flight[struct{}, struct{}] // reads the list of tools; see toolAnnotations

	mu         sync.Mutex
	chain      Handler // middleware, then sender
	use        []Middleware
	roots      []Root
	forwarders map[ID]*forwarder             // by the ID of the subscription at the server
	clocks     map[*callclock.Clock]struct{} // of calls that have a timeout
}

// mustBeMade panics unless the Conn was created by a Client.
func (c *Conn) mustBeMade() {
	made.Check(c != nil && c.client != nil, "mcp: a Conn", "Client.Connect")
}

func newConn(c *Client) *Conn {
	conn := &Conn{
		client: c, roots: append([]Root(nil), c.opts.Roots...),
		forwarders: map[ID]*forwarder{},
		clocks:     map[*callclock.Clock]struct{}{},
	}
	conn.ctx, conn.cancel = context.WithCancelCause(context.Background())
	conn.notes = newNoteQueue(conn)
	conn.notes.held = true // until Connect returns
	conn.sender = HandlerFunc(conn.exchange)
	for _, x := range slices.Backward(c.opts.Extensions) {
		if x.Middleware != nil {
			conn.sender = x.Middleware(conn)(conn.sender)
		}
	}
	conn.use = c.opts.Middleware
	conn.chain = wrap(conn.sender, conn.use)
	return conn
}

// open connects the wire. version is "" if it is unknown.
func (c *Conn) open(ctx context.Context, t transport.Transport, version string) error {
	c.trace = mcptrace.ClientTraceFromContext(ctx)
	wire, err := c.connectTranslated(ctx, tracedTransport{t}, version)
	if err != nil {
		c.cancel(err)
		return privateWireError(ctx, err)
	}
	c.wire = wire
	return nil
}

// receive is the [transport.Receiver] of the connection. Servers may send only
// notifications. Unreadable messages are only logged, because the wire reports an
// unreadable response to its caller.
func (c *Conn) receive(m *transport.Message) {
	switch {
	case m.Err != nil:
		c.logDropped("it could not be read", "id", sparse.Excerpt(m.ID.String()), "error", sparse.Excerpt(m.Err.Error()))
	case m.Method == "":
	case m.IsNotification():
		if note := c.notification(m); note != nil {
			c.receiveNotification(note, m.About)
		}
	default:
		c.logDropped("a server of this revision sends no requests", "method", sparse.Excerpt(m.Method))
	}
}

// notification converts m to a Request. If its params are unreadable, it drops the message
// and returns nil.
func (c *Conn) notification(m *transport.Message) *Request {
	note, err := requestOf(m)
	if err != nil {
		c.logDropped("it could not be read", "method", sparse.Excerpt(m.Method), "error", sparse.Excerpt(err.Error()))
		return nil
	}
	return note
}

// logDropped logs that a message was dropped.
func (c *Conn) logDropped(why string, args ...any) {
	c.warnDropped("mcp: a message of the server was dropped: "+why, args...)
}

// warnDropped logs that something of the server was dropped. Texts of the server in args
// must be excerpts.
func (c *Conn) warnDropped(msg string, args ...any) {
	if n, write := c.dropped.Next(); write {
		c.client.opts.Logger.Warn(msg, append(args, "dropped", n)...)
	}
}

// logOmissions logs, in one line, the parts of an answer that were left out.
func (c *Conn) logOmissions(method string, left omissions) {
	if left.count > 0 {
		c.warnDropped("mcp: parts of the server's answer were left out, because they do not fit the specification",
			"method", sparse.Excerpt(method), "parts", left.first, "count", left.count)
	}
}

// ServeMCP implements [Handler]. It sends the request to the server under a new ID and
// returns the server's response. Unknown members of the params and the result are passed on
// unchanged. Progress is reported to the sender of the request. With
// [ClientOptions].Forward, a request that was received, rather than created with
// [NewRequest], is sent with the capabilities of its sender. The result of server/discover
// lists the versions that this package supports, rather than the server's, because the
// sender talks to this package.
//
// If the request has a Header, as requests received over HTTP have, its Mcp-Param headers
// must agree with its arguments, as for a tool of this program; otherwise ServeMCP returns
// an [*Error] with [CodeHeaderMismatch]. The annotations of a tool are known from the
// server's list, which ServeMCP reads if necessary.
//
// An error response from the server is returned unchanged. Any other error becomes an
// internal error that says only that the server is unavailable or timed out, because the
// original text may contain addresses, keys or the standard error of a process. Its Cause
// is the original error, for logs and middleware. The other methods of Conn return the
// original error, wrapped in a [*PrivateError] if its text is not meant for peers, so that
// a handler may return it.
func (c *Conn) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	res, err := c.serve(ctx, req)
	if err != nil {
		return nil, hideCause(ctx, err)
	}
	switch r := res.(type) { // the sender talks to this server
	case *DiscoverResult:
		served := *r
		served.SupportedVersions = ModernVersions()
		served.Capabilities = withoutTaskCapability(r.Capabilities)
		return &served, nil
	case *ListToolsResult:
		served := *r
		served.Tools = withoutTaskSupport(r.Tools)
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

// hideCause returns the error to send to the sender of a forwarded request.
func hideCause(ctx context.Context, err error) error {
	if codedError(err) != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return cause // cancelled by the sender or by this program
	}
	hidden := &Error{Code: CodeInternalError, Message: notAvailable, Cause: err}
	if errors.Is(err, context.DeadlineExceeded) {
		hidden.Message = "the server behind this one did not answer in time"
	}
	return hidden
}

// Use adds middleware for the requests that this connection sends. The first middleware
// added is outermost. Middleware sees each call once, even if the server asks questions
// about it.
func (c *Conn) Use(mw ...Middleware) {
	c.mustBeMade()
	mustBeMiddleware("Conn.Use", mw)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use = slices.Concat(c.use, mw)
	c.chain = wrap(c.sender, c.use)
}

// Version returns the negotiated protocol version.
func (c *Conn) Version() string {
	c.mustBeMade()
	return c.version
}

// Server returns what the server reported about itself when the connection was opened: its
// capabilities, instructions and, in Meta, its identity.
func (c *Conn) Server() *DiscoverResult {
	c.mustBeMade()
	return c.server
}

// ServerInfo returns the identity of the server, or nil if the server did not report one, or
// not yet, because Connect has not returned.
// Programs must not depend on it.
func (c *Conn) ServerInfo() *Implementation {
	c.mustBeMade()
	var info Implementation
	if c.server == nil || !c.server.Meta.Get(MetaServerInfo, &info) {
		return nil
	}
	return &info
}

// Close closes the connection. Pending calls fail with [ErrClosed], and notifications still
// queued for the client's functions are dropped. Close returns within a time limit set by
// the transport. It may be called from the client's functions.
func (c *Conn) Close() error {
	c.mustBeMade()
	var err error
	c.close.Do(func() {
		c.cancel(ErrClosed)
		err = c.legacy.close(c.wire)
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

// Err returns the reason why the connection ended. It is nil if the connection has not
// ended or was closed by [Conn.Close], and [ErrNoAnswer] if the server did not answer
// pings.
func (c *Conn) Err() error {
	c.mustBeMade()
	if c.noAnswer.Load() {
		return ErrNoAnswer
	}
	if err := c.wire.Err(); !errors.Is(err, ErrClosed) {
		return privateWireError(context.Background(), err)
	}
	return nil
}

// lost returns the error with which the connection has ended, or nil.
func (c *Conn) lost() error {
	select {
	case <-c.wire.Done():
		return privateWireError(context.Background(), c.wire.Err())
	default:
		return nil
	}
}

func (c *Conn) nextID() ID { return IntID(c.ids.Add(1)) }

const notAvailable = "the server behind this one is not available"

// privateWireError wraps the error of a wire in a [PrivateError], because its text may contain
// addresses, keys or the standard error of a process, and a handler may return the error of
// a call that it makes. An error response and the cause of ctx's cancellation are returned
// unchanged, and so is nil.
func privateWireError(ctx context.Context, err error) error {
	if err == nil || codedError(err) != nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return &PrivateError{Public: notAvailable, Err: err}
}

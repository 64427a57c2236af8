// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/go-psi/psi/mcp/transport"
)

// A Client is what a [Conn] needs of the client that uses it. Its methods may be called
// concurrently.
type Client interface {
	// NextID returns an ID that no other request of the connection has.
	NextID() transport.ID
	// CheckDiscovery returns an error if the result of server/discover is not one of a
	// server that the client can talk to without translation.
	CheckDiscovery(result json.RawMessage) error
	// CheckRequest returns why a request of the server is invalid, nil if it is not.
	CheckRequest(m *transport.Message) *transport.Error
	// Answers reports whether the client answers a question of the server itself, and
	// Answer does so.
	Answers(method string, params json.RawMessage) bool
	Answer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *transport.Error)
	// MayAsk returns an error if a caller with the capabilities cannot be asked a question.
	MayAsk(capabilities json.RawMessage, method string, params json.RawMessage) *transport.Error
	// Error returns the client's own form of an error response.
	Error(e *transport.Error) error
	// Withdrawn returns the cause of the context of a question that was withdrawn.
	Withdrawn(reason string) error
	// ProbeSent, Retrying and Reconnecting are called before a request is sent to find out the
	// revision, before a request that failed is sent again, and before a connection or
	// session, as kind says, is opened again.
	ProbeSent(ctx context.Context, method string)
	Retrying(ctx context.Context, method string, err error)
	Reconnecting(ctx context.Context, kind string, err error)
	// LogDropped logs that a message of the server was dropped.
	LogDropped(why string, args ...any)
}

// Options configure a [Conn].
type Options struct {
	// Capabilities are those that the client declares in a session, which may be more than
	// those of its requests.
	Capabilities json.RawMessage
	// Version is the revision that the server is known to speak, "" if it is not known. If
	// it turns out to speak another one, and Pinned is false, the Conn probes.
	Version string
	Pinned  bool
	// Forward makes questions that the client does not answer the results of the calls that
	// they are about. MaxQuestions bounds them for each call.
	Forward      bool
	MaxQuestions int
	Logger       *slog.Logger
}

// A Conn is a [transport.Conn] to a server of any revision. The first call must be
// server/discover: it decides how the server is spoken to. If it fails, the Conn cannot be
// used any more.
type Conn struct {
	client    Client
	opts      Options
	transport transport.Transport
	receiver  transport.Receiver

	delivering sync.Mutex // held while receiver is called
	current    atomic.Pointer[session]
	modern     atomic.Bool // the server speaks the newest revision
	guess      atomic.Bool
	reason     string // why the revision was chosen; set by the first call

	predecessor <-chan struct{} // closed when the connection that was given up has ended; nil if there was none
}

// Connect opens a connection by t; see [transport.Transport].
func Connect(ctx context.Context, t transport.Transport, receive transport.Receiver, client Client, opts Options) (*Conn, error) {
	c := &Conn{client: client, opts: opts, transport: t, receiver: receive}
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// open opens a connection and makes it the current one.
func (c *Conn) open(ctx context.Context) error {
	s := newSession(c)
	wire, err := c.transport.Connect(ctx, s.receive)
	if err != nil {
		s.close()
		return err
	}
	s.wire = wire
	close(s.connected)
	c.current.Store(s)
	return nil
}

// Version returns the older revision that the server speaks, "" if it speaks the newest.
func (c *Conn) Version() string { return c.current.Load().version() }

// IsGuess reports whether the revision is a guess: the server has not said it explicitly.
func (c *Conn) IsGuess() bool { return c.guess.Load() }

// Reason returns why the revision was chosen, for people. It must not be called before the
// first call has returned.
func (c *Conn) Reason() string { return c.reason }

// Unwrap returns the connection of the transport.
func (c *Conn) Unwrap() transport.Conn { return c.current.Load().wire }

// Call implements [transport.Conn].
func (c *Conn) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	s := c.current.Load()
	switch {
	case c.modern.Load():
		return s.wire.Call(ctx, m)
	case m.Method == methodDiscover && s.version() == "":
		return c.negotiate(ctx, m)
	}
	return s.call(ctx, m)
}

// Send implements [transport.Conn].
func (c *Conn) Send(ctx context.Context, m *transport.Outgoing) error {
	s := c.current.Load()
	if c.modern.Load() {
		return s.wire.Send(ctx, m)
	}
	return s.send(ctx, &transport.Outgoing{ID: m.ID, Method: m.Method, Body: m.Body})
}

// Close implements [transport.Conn].
func (c *Conn) Close() error {
	s := c.current.Load()
	s.close()
	err := s.wire.Close()
	if c.predecessor != nil {
		<-c.predecessor
	}
	return err
}

// Done implements [transport.Conn].
func (c *Conn) Done() <-chan struct{} { return c.current.Load().wire.Done() }

// Err implements [transport.Conn].
func (c *Conn) Err() error { return c.current.Load().wire.Err() }

// RootsChanged notifies an older server that the roots of the client have changed. Servers
// of the newest revision ask for the roots whenever they need them.
func (c *Conn) RootsChanged(ctx context.Context) error {
	if c.modern.Load() || !c.declaresRoots() {
		return nil
	}
	return c.current.Load().sendRootsChanged(ctx)
}

// deliver passes a message to the client.
func (c *Conn) deliver(m transport.Message, about transport.ID) {
	c.delivering.Lock()
	defer c.delivering.Unlock()
	c.receiver(m, about)
}

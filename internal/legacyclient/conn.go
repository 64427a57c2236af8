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

// A Client provides what a [Conn] needs from the client that uses it. Its methods may be
// called concurrently.
type Client interface {
	// NextID returns an ID that is not used by any other request of the connection.
	NextID() transport.ID
	// CheckDiscovery returns an error if the result of server/discover does not come from a
	// server that the client can talk to without translation.
	CheckDiscovery(result json.RawMessage) error
	// CheckRequest returns the reason why a server request is invalid, or nil if it is
	// valid.
	CheckRequest(m *transport.Message) *transport.Error
	// Answers reports whether the client answers a question of the server itself. Answer
	// answers it.
	Answers(method string, params json.RawMessage) bool
	Answer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *transport.Error)
	// MayAsk returns an error if a caller with the given capabilities cannot be asked a
	// question.
	MayAsk(capabilities json.RawMessage, method string, params json.RawMessage) *transport.Error
	// Error converts an error response to the client's own error type.
	Error(e *transport.Error) error
	// Withdrawn returns the cancellation cause for the context of a withdrawn question.
	Withdrawn(reason string) error
	// ProbeSent is called before each request that probes for the revision, Retrying before
	// a failed request is sent again, and Reconnecting before a connection or session is
	// reopened; kind says which.
	ProbeSent(ctx context.Context, method string)
	Retrying(ctx context.Context, method string, err error)
	Reconnecting(ctx context.Context, kind string, err error)
	// LogDropped logs that a message from the server was dropped.
	LogDropped(why string, args ...any)
}

// Options configure a [Conn].
type Options struct {
	// Capabilities are the capabilities that the client declares in a session. They may
	// exceed the capabilities declared in its requests.
	Capabilities json.RawMessage
	// Version is the revision that the server is known to speak, or "" if it is unknown. If
	// the server turns out to speak another one and Pinned is false, the Conn probes.
	Version string
	Pinned  bool
	// MayAsk reports whether a server of the newest revision may ask questions while it
	// serves a method.
	MayAsk func(method string) bool
	// If Forward is set, questions that the client does not answer become the results of
	// the calls that they are about.
	Forward bool
	// MaxQuestions is the maximum number of open questions per call. MaxRounds times as many
	// may be asked since the last call began. If AnswerAnytime is set, they may also be asked
	// while there is no call.
	MaxRounds, MaxQuestions int
	AnswerAnytime           bool
	Logger                  *slog.Logger
}

// A Conn is a [transport.Conn] to a server of any revision. The first call must be
// server/discover, which determines the revision. If it fails, the Conn can no longer be
// used. If the server speaks the newest revision, there is nothing to translate: send later
// messages through Unwrap, and close the Conn in the end.
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

	oldConnClosed <-chan struct{} // closed when the abandoned connection is closed; nil if none
}

// Connect opens a connection using t; see [transport.Transport].
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

// Version returns the older revision that the server speaks, or "" if it speaks the newest.
func (c *Conn) Version() string { return c.current.Load().version() }

// IsGuess reports whether the revision is a guess because the server has not stated it
// explicitly.
func (c *Conn) IsGuess() bool { return c.guess.Load() }

// Reason returns a human-readable reason why the revision was chosen. It must not be called
// before the first call has returned.
func (c *Conn) Reason() string { return c.reason }

// Unwrap returns the underlying connection of the transport.
func (c *Conn) Unwrap() transport.Conn { return c.current.Load().wire }

// Info implements [transport.Conn].
func (c *Conn) Info() transport.Info { return c.current.Load().wire.Info() }

// Call implements [transport.Conn].
func (c *Conn) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	s := c.current.Load()
	if m.Method == methodDiscover && s.version() == "" {
		return c.negotiate(ctx, m)
	}
	return s.call(ctx, m)
}

// Send implements [transport.Conn].
func (c *Conn) Send(ctx context.Context, m *transport.Outgoing) error {
	return c.current.Load().send(ctx, &transport.Outgoing{ID: m.ID, Method: m.Method, Body: m.Body})
}

// Close implements [transport.Conn].
func (c *Conn) Close() error {
	s := c.current.Load()
	s.close()
	err := s.wire.Close()
	if c.oldConnClosed != nil {
		<-c.oldConnClosed
	}
	return err
}

// Done implements [transport.Conn].
func (c *Conn) Done() <-chan struct{} { return c.current.Load().wire.Done() }

// Err implements [transport.Conn].
func (c *Conn) Err() error { return c.current.Load().wire.Err() }

// RootsChanged notifies an older server that the client's roots have changed. Servers of
// the newest revision request the roots whenever they need them.
func (c *Conn) RootsChanged(ctx context.Context) error {
	if c.modern.Load() || !c.declaresRoots() {
		return nil
	}
	return c.current.Load().sendRootsChanged(ctx)
}

// deliver passes a message to the client.
func (c *Conn) deliver(m *transport.Message) {
	c.delivering.Lock()
	defer c.delivering.Unlock()
	c.receiver(m)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

var core = mcp.Internal(seam.Key{})

// Options configure a [Server]. Nil means the zero Options.
type Options struct {
	// MaxInFlight limits the requests of a connection or session that are served
	// concurrently. 0 means 1024.
	MaxInFlight int
	// AskTimeout limits how long a client of an older revision may take to answer a
	// question. 0 means one hour; negative means no limit.
	AskTimeout time.Duration
	// KeepAlive is the interval between pings on the standalone stream of a session, which
	// belongs to no request. After three consecutive unanswered pings, the session is
	// closed. 0 means no pings.
	KeepAlive time.Duration
	// Logger receives diagnostic messages. Nil means the logger of the handler.
	Logger *slog.Logger
}

func (o *Options) withDefaults(h mcp.Handler) Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxInFlight <= 0 {
		opts.MaxInFlight = 1024
	}
	if opts.AskTimeout == 0 {
		opts.AskTimeout = time.Hour
	}
	if opts.Logger == nil {
		opts.Logger = core.LoggerOf(h)
	}
	return opts
}

// A Server serves an [mcp.Handler] to clients of all revisions. Use [New] to create one. It is
// safe for concurrent use.
type Server struct {
	Options

	handler     mcp.Handler
	warnedIcons sync.Once // clients can send large icons at will
}

// New returns a server without sessions.
func New(h mcp.Handler, opts *Options) *Server {
	return &Server{Options: opts.withDefaults(h), handler: h}
}

// A Sender sends complete messages to a client. Send may be called concurrently and must
// not retain message.
type Sender interface {
	Send(ctx context.Context, message []byte) error
}

// An Origin describes the sender of a message and the HTTP message that carried it.
// Messages of one session can have different origins, because a client may reconnect with
// another token.
type Origin struct {
	Principal *mcp.Principal      // nil if unauthenticated
	Header    map[string][]string // of the HTTP message; nil on other transports
	IsLegacy  bool                // the transport exists only in older revisions
	InSession bool                // the message belongs to a session of an older revision, unless it says otherwise
}

// Accept reads a message, or a batch of messages, and determines its revision. Neither raw
// nor what Accept returns may be modified later. If the message cannot be read or is invalid,
// the call has an error.
func (s *Server) Accept(raw []byte, from Origin) *Call {
	if transport.IsBatch(raw) {
		return &Call{server: s, batch: &batch{raw: raw, from: from}}
	}
	m, err := transport.ParseMessage(raw)
	if err != nil {
		return s.AcceptUnreadable(err)
	}
	c := s.read(m, from)
	if c.req != nil && c.err == nil && isModern(c.req, from) {
		c.isModern = true
		c.refuse(checkModern(c.req))
	}
	return c
}

// read returns the call of a message, without its revision.
func (s *Server) read(m transport.Message, from Origin) *Call {
	c := &Call{server: s, id: m.ID}
	if m.IsResponse() {
		answer := m // only responses are retained
		c.answer = &answer
		return c
	}
	var err error
	c.req, err = core.NewRequest(&m)
	c.req.Principal, c.req.Header = from.Principal, from.Header
	c.refuse(err)
	return c
}

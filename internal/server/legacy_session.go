// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// Details describe a session before its first message.
type Details struct {
	// ID is the id of the session, or "" if the connection is the session.
	ID string
	// Principal is the caller who opens the session, or nil if unauthenticated. It is
	// returned by [mcp.Session.Principal]. Each request has the principal of its own
	// origin.
	Principal *mcp.Principal
	// InFlight is the table of the connection, if messages of the newest revision have the
	// same. Nil means a table of its own.
	InFlight *InFlight
	// Closed is called once, in its own goroutine, when the session has ended. It may be
	// nil.
	Closed func()
	// QuestionPrefix is what the IDs of questions begin with. It must differ from those of
	// other sessions.
	QuestionPrefix string
	// Reserve is called before the session keeps n more bytes of subscriptions, or, if n is
	// negative, when it keeps fewer. If it returns false, the subscription is refused. It
	// must not wait. Nil means that only the limits of a single session apply.
	Reserve func(n int) bool
}

// A Session is the server side of a session with a client of an older revision. Transports
// pass it the messages of one session. It is safe for concurrent use.
type Session struct {
	server  *Server
	details Details
	public  *mcp.Session
	ctx     context.Context //nolint:containedctx // it is the lifetime of the session
	cancel  context.CancelCauseFunc

	mu            sync.Mutex
	rev           revision.Revision // None before initialize
	hungUp        bool              // the client can no longer answer
	info, caps    json.RawMessage   // of the client
	level         mcp.LoggingLevel
	questions     map[mcp.ID]chan transport.Message // closed by HangUp
	asked         int64
	subscriptions map[string]struct{}
	subscribed    int                    // bytes of subscriptions, as counted by subscriptionSize
	feed          *feed                  // of the Listen started last, or nil
	accepted      mcp.SubscriptionFilter // changes that the handler sends
}

// NewSession returns a session. If state is nil, the session waits for initialize;
// otherwise it continues the session whose [Session.State] returned state.
func (srv *Server) NewSession(d Details, state *State) *Session {
	if d.InFlight == nil {
		d.InFlight = srv.NewInFlight()
	}
	s := &Session{server: srv, details: d, level: mcp.LoggingLevelInfo}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if state != nil {
		s.restore(state)
	}
	s.public = core.NewSession(s)
	return s
}

// Public returns the session as seen by handlers.
func (s *Session) Public() *mcp.Session { return s.public }

// Context returns a context that is done when the session has ended. Its cause is
// [ErrSilent] if the client did not answer pings.
func (s *Session) Context() context.Context { return s.ctx }

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Close ends the session; see [mcp.Session.Close].
func (s *Session) Close() { s.close(mcp.ErrClosed) }

// close ends the session and cancels its context with cause.
func (s *Session) close(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return
	}
	s.cancel(cause)
	if s.details.Closed != nil {
		go s.details.Closed()
	}
	if s.details.Reserve != nil {
		s.details.Reserve(-s.subscribed)
	}
	s.details.InFlight.cancelAll(s, mcp.ErrClosed)
}

func (s *Session) isClosed() bool { return s.ctx.Err() != nil }

// HangUp fails all pending and future questions, because the client sends nothing more.
// Requests continue. HangUp is called at most once.
func (s *Session) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hungUp = true
	for _, answer := range s.questions {
		close(answer)
	}
	s.questions = nil
}

// ID returns the id of the session.
func (s *Session) ID() string { return s.details.ID }

// Principal returns the caller who opened the session.
func (s *Session) Principal() *mcp.Principal { return s.details.Principal }

// Version returns the negotiated version, or "" before initialize.
func (s *Session) Version() string { return s.revision().String() }

func (s *Session) revision() revision.Revision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rev
}

// Initialized reports whether the handshake is done.
func (s *Session) Initialized() bool { return s.revision() != revision.None }

// Batches reports whether the negotiated revision allows batches, which are arrays of
// messages.
func (s *Session) Batches() bool { return s.revision() == revision.R202503 }

// Resumes reports whether the negotiated revision allows a server to close the connection
// of a stream and the client to reconnect for the rest. Streams of such a revision begin
// with an event that has only an id.
func (s *Session) Resumes() bool { return s.revision() == revision.R202511 }

// ClientInfo returns the client's description of itself, or nil.
func (s *Session) ClientInfo() *mcp.Implementation {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := new(mcp.Implementation)
	if s.info == nil || strictjson.Unmarshal(s.info, info) != nil {
		return nil
	}
	return info
}

// standaloneSender returns the standalone stream, which belongs to no request, or nil if
// there is none.
func (s *Session) standaloneSender() Sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed == nil {
		return nil
	}
	return s.feed.out
}

// Notify sends a notification on the standalone stream.
func (s *Session) Notify(ctx context.Context, method string, params json.RawMessage) error {
	out := s.standaloneSender()
	if out == nil {
		return mcp.ErrNotDelivered
	}
	return out.Send(ctx, transport.AppendNotification(nil, method, params))
}

func (s *Session) translation() translation { return translation{s.revision()} }

// describe adds the session, its version and the client's details to a request.
func (s *Session) describe(req *mcp.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.describeLocked(req)
}

// describeLocked adds the session, its version and the client's details to a request.
func (s *Session) describeLocked(req *mcp.Request) {
	version := s.rev
	if version == revision.None {
		version = revision.Newest // for the initialize request itself
	}
	core.SetSession(req, s.public, version.String(), s.info, s.caps, s.level)
}

// serveRequest serves the methods that only the older revisions have, and translates the
// others.
func (s *Session) serveRequest(c *Call) (mcp.Result, error) {
	ctx, req := c.ctx, c.req
	switch req.Method {
	case revision.Initialize:
		return s.initialize(ctx, req)
	case revision.Ping:
		return &mcp.EmptyResult{}, nil
	}
	if !s.Initialized() {
		return nil, mcp.Errorf(mcp.CodeInvalidRequest, "the session is not initialized: send initialize first, or name the protocol version in params._meta")
	}
	switch req.Method {
	case revision.SetLevel:
		return s.setLevel(req)
	case mcp.MethodSubscribe:
		return s.subscribe(ctx, req)
	case revision.Unsubscribe:
		return s.unsubscribe(ctx, req)
	case mcp.MethodDiscover, mcp.MethodListen, tasking.MethodGet, tasking.MethodUpdate, tasking.MethodCancel:
		return nil, mcp.NewMethodNotFoundError(req.Method)
	}
	return s.replay(c)
}

func (s *Session) setLevel(req *mcp.Request) (mcp.Result, error) {
	var p struct {
		Level json.RawMessage `json:"level"`
	}
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	level, err := core.ParseLoggingLevel(p.Level)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
	return &mcp.EmptyResult{}, nil
}

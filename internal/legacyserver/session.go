// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

var core = mcp.Internal(seam.Key{})

// Options configure a [Server]. Nil means the zero Options.
type Options struct {
	// MaxInFlight limits the requests of a session that are served at once. 0 means 1024.
	MaxInFlight int
	// MaxRounds limits how often one request may ask. 0 means 32.
	MaxRounds int
	// AskTimeout limits how long a client may take to answer a question. 0 means an
	// hour, negative no limit.
	AskTimeout time.Duration
	// KeepAlive is the time between two pings on the stream that belongs to no
	// request. After three in a row without an answer the session is closed. 0 means
	// no pings.
	KeepAlive time.Duration
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxInFlight <= 0 {
		opts.MaxInFlight = serving.MaxInFlight
	}
	if opts.MaxRounds <= 0 {
		opts.MaxRounds = 32
	}
	if opts.AskTimeout == 0 {
		opts.AskTimeout = time.Hour
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// A Server serves an [mcp.Handler] to clients of older revisions. Use [NewServer] to make one.
// It is safe for concurrent use.
type Server struct {
	Options

	handler mcp.Handler
}

// NewServer returns a server without sessions.
func NewServer(h mcp.Handler, opts *Options) *Server { return &Server{opts.withDefaults(), h} }

// Details are what is known of a session before its first message.
type Details struct {
	// ID is the id of the session, "" if the connection is the session.
	ID string
	// Principal is the caller who opens the session, nil if not authenticated. It is
	// what [mcp.Session.Principal] returns. Requests have the principal of their own
	// origin.
	Principal *mcp.Principal
	// Closed is called once, in a goroutine of its own, when the session has ended. It
	// may be nil.
	Closed func()
	// Withdrawn is called when a question that was sent has ended without an answer. It
	// may be nil.
	Withdrawn func(question mcp.ID)
}

// A Session is the server's end of a conversation with a client of an older revision.
// Transports give it the messages of one session. It is safe for concurrent use.
type Session struct {
	server  *Server
	details Details
	public  *mcp.Session
	ctx     context.Context //nolint:containedctx // it is the lifetime of the session
	cancel  context.CancelCauseFunc

	mu            sync.Mutex
	rev           revision.Revision // None before initialize
	tasks         bool              // the handler has the tasks of the newest revision
	hungUp        bool              // the client cannot answer any more
	info, caps    json.RawMessage   // of the client
	level         mcp.LoggingLevel
	ended         []endedTask                       // calls that were answered at once
	inflight      []*Call                           // requests
	questions     map[mcp.ID]chan transport.Message // closed by HangUp
	asked         int64
	subscriptions map[string]struct{}
	feed          *feed                  // of the last Listen started, nil while there is none
	accepted      mcp.SubscriptionFilter // what the handler sends changes of
}

// NewSession returns a session that waits for initialize or, if state is not nil, the one that
// [Session.State] described.
func (srv *Server) NewSession(d Details, state *State) *Session {
	s := &Session{server: srv, details: d, level: mcp.LoggingLevelInfo}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if state != nil {
		s.restore(state)
	}
	s.public = core.NewSession(s)
	return s
}

// Public returns the session as handlers see it.
func (s *Session) Public() *mcp.Session { return s.public }

// Context is done when the session has ended. Its cause is [ErrSilent] if the client did not
// answer pings.
func (s *Session) Context() context.Context { return s.ctx }

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Close ends the session; see [mcp.Session.Close].
func (s *Session) Close() { s.close(mcp.ErrClosed) }

// close ends the session and its context, which gets the cause.
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
	for _, c := range s.inflight {
		c.cancel(mcp.ErrClosed)
	}
}

func (s *Session) isClosed() bool { return s.ctx.Err() != nil }

// HangUp fails the questions that wait for an answer, and all later ones: the client
// sends nothing more. Requests go on. It is called at most once.
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

// Version returns the negotiated version, "" before initialize.
func (s *Session) Version() string { return s.revision().String() }

func (s *Session) revision() revision.Revision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rev
}

// Initialized reports whether the handshake is done.
func (s *Session) Initialized() bool { return s.revision() != revision.None }

// Batches reports whether the negotiated revision joins messages to arrays.
func (s *Session) Batches() bool { return s.revision() == revision.R202503 }

// Resumes reports whether the negotiated revision lets a server close the connection of
// a stream, and its client come back for the rest. Its streams begin with an event that
// has nothing but an id.
func (s *Session) Resumes() bool { return s.revision() == revision.R202511 }

// ClientInfo returns what the client said of itself, or nil.
func (s *Session) ClientInfo() *mcp.Implementation {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := new(mcp.Implementation)
	if s.info == nil || strictjson.Unmarshal(s.info, info) != nil {
		return nil
	}
	return info
}

// standaloneSender returns the stream that belongs to no request, nil if there is none.
func (s *Session) standaloneSender() serving.Sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed == nil {
		return nil
	}
	return s.feed.out
}

// Notify sends a notification on the stream that belongs to no request.
func (s *Session) Notify(ctx context.Context, method string, params json.RawMessage) error {
	out := s.standaloneSender()
	if out == nil {
		return mcp.ErrNotDelivered
	}
	return out.Send(ctx, transport.AppendNotification(nil, method, params))
}

// describeLocked makes a request one of the session, which says who its sender is.
func (s *Session) describeLocked(req *mcp.Request) {
	version := s.rev
	if version == revision.None {
		version = revision.Newest // of the initialize request itself
	}
	core.SetSession(req, s.public, version.String(), s.info, s.caps, s.level)
}

// serveRequest answers the methods that only the older revisions have, and translates
// the others.
func (s *Session) serveRequest(ctx context.Context, req *mcp.Request, out serving.Sender) (mcp.Result, error) {
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
	case mcp.MethodDiscover, mcp.MethodListen:
		return nil, mcp.NewMethodNotFoundError(req.Method)
	}
	if s.hasTasks() {
		return s.serveTasks(ctx, req, out)
	}
	return s.replay(ctx, req, out)
}

// notified serves a notification.
func (s *Session) notified(ctx context.Context, req *mcp.Request) {
	switch req.Method {
	case revision.Initialized:
	case mcp.NotificationCancelled:
		s.Cancel(req)
	default:
		s.mu.Lock()
		s.describeLocked(req)
		s.mu.Unlock()
		_, _ = core.Serve(ctx, s.server.handler, req, nil, s.server.Logger) // a notification has no outcome
	}
}

// Cancel cancels the request that a notifications/cancelled names.
func (s *Session) Cancel(note *mcp.Request) {
	var p mcp.CancelledParams
	if note.Decode(&p) != nil {
		return
	}
	s.mu.Lock()
	c := s.inFlightLocked(p.RequestID)
	s.mu.Unlock()
	if c != nil {
		c.cancel(&mcp.CancelError{Reason: p.Reason})
	}
}

// Awaits reports whether m answers a question of a request that is in flight in this
// process, or cancels such a request.
func (s *Session) Awaits(m *transport.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.IsResponse() {
		return s.questions[m.ID] != nil
	}
	if m.Method != mcp.NotificationCancelled {
		return false
	}
	var p mcp.CancelledParams
	return m.Params != nil && strictjson.Unmarshal(m.Params, &p) == nil && s.inFlightLocked(p.RequestID) != nil
}

// Questions returns the IDs of the questions that wait for an answer in this process.
func (s *Session) Questions() []mcp.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.questions))
}

func (s *Session) setLevel(req *mcp.Request) (mcp.Result, error) {
	level, err := levelIn(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
	return &mcp.EmptyResult{}, nil
}

// levelIn returns the level that a logging/setLevel request sets.
func levelIn(req *mcp.Request) (mcp.LoggingLevel, error) {
	var p struct {
		Level json.RawMessage `json:"level"`
	}
	if err := req.Decode(&p); err != nil {
		return "", err
	}
	return core.ParseLoggingLevel(p.Level)
}

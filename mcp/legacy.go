// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"
)

// The methods that only the legacy era has.
const (
	legacyInitialize  = "initialize"
	legacyInitialized = "notifications/initialized"
	legacyPing        = "ping"
	legacySetLevel    = "logging/setLevel"
	legacySubscribe   = MethodSubscribe
	legacyUnsubscribe = "resources/unsubscribe"
)

// A Sender takes whole messages to the peer. Send may be called by several
// goroutines at once; it must not keep message.
type Sender interface {
	Send(ctx context.Context, message []byte) error
}

// LegacyOptions configure a [Legacy]. Nil means the zero LegacyOptions.
type LegacyOptions struct {
	// ID is the session's id, "" if the connection is the session.
	ID string
	// Principal is who opens the session, nil if nobody was authenticated. It is what
	// [Session.Principal] returns. Requests do not get it: each is its own sender's.
	Principal *Principal
	// MaxRounds is how often one request may ask before it fails. 0 means 32.
	MaxRounds int
	// AskTimeout is how long a client may take to answer a question. 0 means an
	// hour, negative no limit.
	AskTimeout time.Duration
	// KeepAlive is the time between two pings on the stream that belongs to no
	// request. After three in a row without an answer the session is closed. 0
	// means no pings.
	KeepAlive time.Duration
	// State is that of a session to go on with, as [Legacy.State] returned it.
	// Nil means a new one.
	State *LegacyState
	// Logger gets what there is to say to the operator. Nil means slog.Default.
	Logger *slog.Logger
}

// Legacy is the server's end of a conversation of the legacy era: it answers
// what that era's handshake, sessions and utilities ask for, and turns the rest
// into requests of the modern core to its Handler. Transports feed it the
// messages of one session; it is safe for concurrent use.
type Legacy struct {
	handler Handler
	opts    LegacyOptions
	session Session
	gone    chan struct{} // closed when the client cannot answer any more; nil if nobody says so
	most    int           // requests that may be served at once

	ctx    context.Context // ends with the session
	cancel context.CancelCauseFunc

	mu            sync.Mutex
	era           legacyEra          // zero before initialize
	accepted      SubscriptionFilter // the last acknowledgement of the handler to a feed
	info, caps    json.RawMessage
	level         LoggingLevel
	inflight      inflight
	questions     map[ID]chan *Response
	asked         int64
	subscriptions map[string]struct{}
	feed          *feed // the last Listen started; nil if it has returned
}

// NewLegacy begins a session that waits for initialize.
func NewLegacy(h Handler, opts *LegacyOptions) *Legacy {
	l := &Legacy{handler: h, level: LogInfo, most: maxInFlight}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.MaxRounds <= 0 {
		l.opts.MaxRounds = 32
	}
	if l.opts.AskTimeout == 0 {
		l.opts.AskTimeout = time.Hour
	}
	if l.opts.Logger == nil {
		l.opts.Logger = slog.Default()
	}
	if l.opts.State != nil {
		l.resume(l.opts.State)
	}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.session.legacy = l
	return l
}

// Session is the session as handlers see it.
func (l *Legacy) Session() *Session { return &l.session }

// Context returns a context that is done when the session has ended.
func (l *Legacy) Context() context.Context { return l.ctx }

// Close ends the session; see [Session.Close].
func (l *Legacy) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel(ErrClosed)
	for _, r := range l.inflight {
		r.cancel(ErrClosed)
	}
}

// isClosed reports whether the session has ended. With the lock held, the answer holds
// until the lock is released.
func (l *Legacy) isClosed() bool { return l.ctx.Err() != nil }

// hangUp fails the questions that wait for an answer, and all to come: the client
// has no more to say. Requests go on.
func (l *Legacy) hangUp() { close(l.gone) }

// Initialized reports whether the handshake is done.
func (l *Legacy) Initialized() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.era.rev != revNone
}

// Batches reports whether the negotiated revision joins messages to arrays.
func (l *Legacy) Batches() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.era.batches()
}

// Resumes reports whether the negotiated revision lets a server close the
// connection of a stream, and its client come back for the rest.
func (l *Legacy) Resumes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.era.resumes()
}

func (l *Legacy) version() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.era.rev.String()
}

func (l *Legacy) clientInfo() *Implementation {
	l.mu.Lock()
	defer l.mu.Unlock()
	info := new(Implementation)
	if l.info == nil || unmarshal(l.info, info) != nil {
		return nil
	}
	return info
}

func (l *Legacy) standaloneSender() Sender {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.feed == nil {
		return nil
	}
	return l.feed.out
}

// IsInitialize reports whether m opens a session.
func (m *Message) IsInitialize() bool {
	return m.Request != nil && m.Request.Method == legacyInitialize && !m.Request.IsNotification()
}

// IsInitialized reports whether m ends the handshake.
func (m *Message) IsInitialized() bool {
	return m.Request != nil && m.Request.Method == legacyInitialized
}

// fillIn makes a request of the session one that speaks for itself.
func (l *Legacy) fillIn(req *Request) {
	req.call.session = &l.session
	if l.era.rev == revNone {
		req.peer.version = newestLegacy.String()
		return
	}
	req.peer.version = l.era.rev.String()
	req.peer.info, req.peer.caps, req.peer.logLevel = l.info, l.caps, l.level
	req.peer.decoded.Store(nil)
}

// isLegacy reports whether the request came through a session.
func (c *call) isLegacy() bool { return c.session != nil }

// serveRequest answers the methods of the era itself and hands on the others.
func (l *Legacy) serveRequest(ctx context.Context, req *Request, out Sender) (Result, error) {
	switch req.Method {
	case legacyInitialize:
		return l.initialize(ctx, req)
	case legacyPing:
		return &EmptyResult{}, nil
	}
	if !l.Initialized() {
		return nil, Errorf(CodeInvalidRequest, "the session is not initialized: send initialize first, or name the protocol version in params._meta")
	}
	switch req.Method {
	case legacySetLevel:
		return l.setLevel(req)
	case legacySubscribe:
		return l.subscribe(ctx, req)
	case legacyUnsubscribe:
		return l.unsubscribe(ctx, req)
	case MethodDiscover, MethodListen:
		return nil, MethodNotFound(req.Method)
	}
	return l.replay(ctx, req, out)
}

// notified takes a notification. Those of the era end here.
func (l *Legacy) notified(ctx context.Context, req *Request) {
	switch req.Method {
	case legacyInitialized:
	case NotificationCancelled:
		l.cancelled(req)
	default:
		l.mu.Lock()
		l.fillIn(req)
		l.mu.Unlock()
		_, _ = Serve(ctx, l.handler, req, nil, l.opts.Logger) // nobody hears of its outcome
	}
}

func (l *Legacy) cancelled(req *Request) {
	var p CancelledParams
	if req.Decode(&p) != nil {
		return
	}
	l.mu.Lock()
	cancel := l.inflight.find(p.RequestID)
	l.mu.Unlock()
	if cancel != nil {
		cancel(&CancelError{Reason: p.Reason})
	}
}

// Awaits reports whether a message helps a request that is being served here: it
// answers a question of it, or cancels it.
func (l *Legacy) Awaits(m *Message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Response != nil {
		return l.questions[m.Response.ID] != nil
	}
	if m.Request.Method != NotificationCancelled {
		return false
	}
	var p CancelledParams
	return m.Request.Decode(&p) == nil && l.inflight.find(p.RequestID) != nil
}

// InitializeParams are the params of initialize.
type InitializeParams struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"` // ClientCapabilities
	ClientInfo      json.RawMessage `json:"clientInfo"`   // Implementation
	Meta            Meta            `json:"_meta,omitempty"`
}

// InitializeResult answers initialize.
type InitializeResult struct {
	ResultBase
	ProtocolVersion string              `json:"protocolVersion"`
	Capabilities    *ServerCapabilities `json:"capabilities"`
	ServerInfo      Implementation      `json:"serverInfo"`
	Instructions    string              `json:"instructions,omitempty"`
}

// initialize negotiates: the version that was asked for if it is spoken,
// otherwise the newest of the era. What the server is, server/discover tells.
func (l *Legacy) initialize(ctx context.Context, req *Request) (Result, error) {
	var p InitializeParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if p.ProtocolVersion == "" {
		return nil, Errorf(CodeInvalidParams, "params.protocolVersion is missing")
	}
	era := legacyEra{revisionOf(p.ProtocolVersion)}
	if era.rev == revNone || era.rev.modern() {
		era.rev = newestLegacy
	}
	if err := l.open(era, &p); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.fillIn(req)
	l.mu.Unlock()
	d, info, err := l.discover(ctx, req)
	if err != nil {
		l.reset()
		return nil, err
	}
	return &InitializeResult{
		ProtocolVersion: era.rev.String(),
		Capabilities:    era.capabilities(d.Capabilities),
		ServerInfo:      era.implementation(info),
		Instructions:    d.Instructions,
	}, nil
}

// discover asks the handler what it is and offers.
func (l *Legacy) discover(ctx context.Context, req *Request) (*DiscoverResult, Implementation, error) {
	var info Implementation
	discover := req.Clone() // the same call, which is served here only
	discover.Method, discover.params = MethodDiscover, params{}
	res, err := Serve(ctx, l.handler, discover, nil, l.opts.Logger)
	if err != nil {
		return nil, info, err
	}
	d, ok := res.(*DiscoverResult)
	if !ok {
		return nil, info, Errorf(CodeInternalError, "%s was answered with a %T", MethodDiscover, res)
	}
	if !d.Meta.Get(MetaServerInfo, &info) && discover.call.server() != nil {
		_ = unmarshal(discover.call.server(), &info)
	}
	return d, info, nil
}

// open enters what the client says of itself, unless the handshake is done or under
// way.
func (l *Legacy) open(era legacyEra, p *InitializeParams) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.era.rev != revNone {
		return Errorf(CodeInvalidRequest, "the session is initialized already")
	}
	l.era, l.info, l.caps = era, p.ClientInfo, era.clientCapabilities(p.Capabilities)
	return nil
}

// reset undoes open after a handshake that failed: the client may try again.
func (l *Legacy) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.era, l.info, l.caps = legacyEra{}, nil, nil
}

func (l *Legacy) setLevel(req *Request) (Result, error) {
	var p struct {
		Level json.RawMessage `json:"level"`
	}
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	level, ok := parseLoggingLevel(p.Level)
	if !ok {
		return nil, Errorf(CodeInvalidParams, "params.level must be one of %s", loggingLevelNames)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.level = level
	return &EmptyResult{}, nil
}

func wasCancelled(ctx context.Context) bool {
	_, ok := context.Cause(ctx).(*CancelError) //nolint:errorlint // a cause is not wrapped
	return ok
}

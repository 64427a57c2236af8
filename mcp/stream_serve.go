// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/bufpool"
)

// StreamOptions configure [ServeStream]. Nil means the zero StreamOptions.
type StreamOptions struct {
	// Principal is the peer, nil if nobody authenticated it.
	Principal *Principal
	// MaxInFlight is how many requests may be served at once; more are refused.
	// 0 means 1024.
	MaxInFlight int
	// DrainTimeout is how long requests may go on when the peer has no more to
	// say, or ctx is done. 0 means 10 seconds, negative not at all.
	DrainTimeout time.Duration
	// Legacy configures the session of a client of the legacy era. Its ID and
	// Principal are not used.
	Legacy *LegacyOptions
	// Logger gets what there is to say to the operator. Nil means slog.Default.
	Logger *slog.Logger
}

// ServeStream serves h to the peer of a stream, in both eras, until the peer has
// no more to say or ctx is done. It then ends subscriptions, lets the requests
// that are being served finish within a bound, closes the stream and returns: nil
// after the end of the stream, otherwise why.
//
// No message goes from one goroutine to another: who reads a request serves it,
// and another goroutine reads on only if that takes longer than a moment.
func ServeStream(ctx context.Context, h Handler, stream Stream, opts *StreamOptions) error {
	s := newStreamServer(ctx, h, stream, opts)
	defer stream.Close()
	defer s.cancel(ErrClosed)
	go s.lead()
	var err error
	select {
	case <-s.ended:
		err = s.endedBy
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.drain()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

type streamServer struct {
	handler Handler
	stream  Stream
	opts    StreamOptions
	legacy  *Legacy
	ctx     context.Context // of all requests; outlives the ctx of ServeStream while they drain
	cancel  context.CancelCauseFunc

	listening context.Context // of subscriptions, which end before other requests
	hush      context.CancelCauseFunc

	ended   chan struct{} // closed when nothing more is read
	endedBy error

	mu       sync.Mutex
	inflight map[ID]context.CancelCauseFunc
	active   int           // messages being served
	idle     chan struct{} // closed when active is 0 while draining; nil before
}

func newStreamServer(ctx context.Context, h Handler, stream Stream, opts *StreamOptions) *streamServer {
	s := &streamServer{handler: h, stream: stream, ended: make(chan struct{}), inflight: map[ID]context.CancelCauseFunc{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.MaxInFlight <= 0 {
		s.opts.MaxInFlight = 1024
	}
	if s.opts.DrainTimeout == 0 {
		s.opts.DrainTimeout = 10 * time.Second
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.Default()
	}
	var legacy LegacyOptions
	if s.opts.Legacy != nil {
		legacy = *s.opts.Legacy
	}
	legacy.ID, legacy.Principal = "", s.opts.Principal
	s.legacy = NewLegacy(h, &legacy)
	s.legacy.gone = make(chan struct{})
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.listening, s.hush = context.WithCancelCause(s.ctx)
	return s
}

// Send implements [Sender].
func (s *streamServer) Send(ctx context.Context, message []byte) error {
	return s.stream.Write(ctx, message)
}

// moment is how long a goroutine serves a message before another one reads on.
const moment = time.Millisecond

// A leader reads messages and serves them. While it serves one for longer than a
// moment it is replaced by a new leader, and ends when it is done.
type leader struct {
	server *streamServer
	timer  *time.Timer
	mu     sync.Mutex
	busy   bool
}

func (s *streamServer) lead() {
	l := &leader{server: s}
	for {
		data, err := s.stream.Read(s.ctx)
		var coded *Error
		switch {
		case errors.As(err, &coded):
			s.write(AppendErrorResponse(nil, ID{}, err))
		case err != nil:
			s.endedBy = err
			close(s.ended)
			return
		case !l.serve(data):
			return
		}
	}
}

// serve serves one message and reports whether l still leads.
func (l *leader) serve(data []byte) bool {
	l.begin()
	l.server.serve(data, l.resign)
	return l.end()
}

func (l *leader) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = true
	if l.timer == nil {
		l.timer = time.AfterFunc(moment, l.resign)
	} else {
		l.timer.Reset(moment)
	}
}

func (l *leader) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	leads := l.busy
	l.busy = false
	l.timer.Stop()
	return leads
}

// resign lets another goroutine lead. A timer that fires late does so for the
// next message, which is early but no harm.
func (l *leader) resign() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		l.busy = false
		go l.server.lead()
	}
}

// serve serves one message, or a batch. It calls resign if that will take long.
func (s *streamServer) serve(data []byte, resign func()) {
	if !s.enter() {
		s.serveLate(data)
		return
	}
	defer s.leave()
	if IsBatch(data) {
		if !s.legacy.Batches() {
			s.write(AppendErrorResponse(nil, ID{}, Errorf(CodeInvalidRequest, "a message must be an object, not an array")))
			return
		}
		s.write(s.legacy.ServeBatch(s.ctx, nil, data, s))
		return
	}
	m, err := ParseMessage(data)
	if err != nil {
		s.opts.Logger.DebugContext(s.ctx, "mcp: malformed message", "error", err)
		if m.Request == nil || !m.Request.IsNotification() {
			s.write(AppendErrorResponse(nil, m.ID, err))
		}
		return
	}
	s.route(&m, resign)
}

// route decides the era of one message.
func (s *streamServer) route(m *Message, resign func()) {
	if m.Request != nil {
		m.Request.Principal = s.opts.Principal
		switch {
		case m.Request.Method == NotificationCancelled && m.Request.IsNotification():
			s.cancelled(m.Request)
		case s.isModern(m.Request):
			s.serveModern(m.Request, resign)
			return
		}
	}
	s.serveLegacy(m)
	if m.Request != nil && m.Request.Method == legacyInitialized && s.legacy.Initialized() {
		_ = s.legacy.listen(s.listening, s, resign, nil) // until the stream ends
	}
}

func (s *streamServer) serveLegacy(m *Message) {
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = s.legacy.Serve(s.ctx, buf.B, *m, s)
	s.write(buf.B)
}

// isModern also claims the methods that no older revision has, so that their
// errors say what is missing.
func (s *streamServer) isModern(req *Request) bool {
	return req.IsModern() || !s.legacy.Initialized() && (req.Method == MethodDiscover || req.Method == MethodListen)
}

func (s *streamServer) serveModern(req *Request, resign func()) {
	if err := req.CheckMeta(); err != nil {
		s.refuse(req, err)
		return
	}
	if err := req.CheckVersion(); err != nil {
		s.refuse(req, err)
		return
	}
	if req.IsNotification() {
		_, _ = Serve(s.ctx, s.handler, req, nil, s.opts.Logger) // nobody hears of its outcome
		return
	}
	if req.Method == MethodListen {
		resign()
	}
	ctx, done, err := s.begin(req)
	if err != nil {
		s.refuse(req, err)
		return
	}
	res, err := Serve(ctx, s.handler, req, senderNotifier{s}, s.opts.Logger)
	cancelled := wasCancelled(ctx)
	done() // first: who has the answer may use the id again
	if cancelled {
		return
	}
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = AppendResponse(buf.B, req, res, err)
	s.write(buf.B)
	if _, ok := res.(*ListenResult); ok {
		s.endListen(req.ID)
	}
}

// endListen says a second time that a subscription has ended, for clients that
// follow the page on cancellation rather than the one on subscriptions. It comes
// after the result because a cancellation that is late is ignored by everyone,
// and a response is not: the official TypeScript client reports an unknown one.
func (s *streamServer) endListen(id ID) {
	params := mustMarshal(&CancelledParams{RequestID: id})
	s.write(AppendNotification(nil, NotificationCancelled, params))
}

func (s *streamServer) refuse(req *Request, err error) {
	if !req.IsNotification() {
		s.write(AppendErrorResponse(nil, req.ID, err))
	}
}

func (s *streamServer) begin(req *Request) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inflight[req.ID] != nil {
		return nil, nil, duplicateID(req.ID)
	}
	if len(s.inflight) >= s.opts.MaxInFlight {
		return nil, nil, tooMany(s.opts.MaxInFlight)
	}
	base := s.ctx
	if req.Method == MethodListen {
		base = s.listening
	}
	ctx, cancel := context.WithCancelCause(base)
	s.inflight[req.ID] = cancel
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.inflight, req.ID)
	}, nil
}

func (s *streamServer) cancelled(req *Request) {
	var p CancelledParams
	if req.Decode(&p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.inflight[p.RequestID]; cancel != nil {
		cancel(&CancelError{Reason: p.Reason})
	}
}

// write sends a message if there is one. A stream that cannot be written to is
// at its end; whoever reads it will see.
func (s *streamServer) write(message []byte) {
	if len(message) == 0 {
		return
	}
	if err := s.stream.Write(s.ctx, message); err != nil {
		s.opts.Logger.DebugContext(s.ctx, "mcp: message not written", "error", err)
	}
}

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
)

// StreamOptions configure [ServeStream]. Nil means the zero StreamOptions.
type StreamOptions struct {
	// Principal is the peer, nil if nobody authenticated it.
	Principal *Principal
	// MaxInFlight is how many requests may be served at once; more are refused.
	// When some times as many messages are being served, refusals that the peer
	// does not read included, nothing is read until there are fewer. 0 means 1024.
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
	handler  Handler
	stream   Stream
	opts     StreamOptions
	legacy   *Legacy
	notifier senderNotifier
	ctx      context.Context // of all requests; outlives the ctx of ServeStream while they drain
	cancel   context.CancelCauseFunc

	listening context.Context // of subscriptions, which end before other requests
	hush      context.CancelCauseFunc

	ended   chan struct{} // closed when nothing more is read
	endedBy error

	mu       sync.Mutex
	inflight map[ID]context.CancelCauseFunc
	active   int           // messages being served
	unled    bool          // nobody reads, because too many are
	opened   bool          // the session is told of changes, or was
	idle     chan struct{} // closed when active is 0 while draining; nil before
}

func newStreamServer(ctx context.Context, h Handler, stream Stream, opts *StreamOptions) *streamServer {
	s := &streamServer{handler: h, stream: stream, ended: make(chan struct{}), inflight: map[ID]context.CancelCauseFunc{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.MaxInFlight <= 0 {
		s.opts.MaxInFlight = maxInFlight
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
	s.legacy.gone, s.legacy.most = make(chan struct{}), s.opts.MaxInFlight
	s.notifier.out = s
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
			s.refuse(err)
		case err != nil:
			s.endedBy = err
			close(s.ended)
			return
		case !l.serve(data):
			return
		}
	}
}

// refuse answers a message that the stream could not return.
func (s *streamServer) refuse(err error) {
	if !s.enter() {
		return
	}
	a := arrival{server: s}
	a.takeUnreadable(unreadable(Message{}, err), err)
	a.serve(func() {})
}

// serve takes and serves one message and reports whether l still leads. It does
// not resign before the message is taken: the next leader may read that it is
// cancelled.
func (l *leader) serve(data []byte) bool {
	a := l.server.take(data)
	l.begin(a.patience())
	a.serve(l.resign)
	return l.end()
}

func (l *leader) begin(patience time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = true
	if l.timer == nil {
		l.timer = time.AfterFunc(patience, l.resign)
	} else {
		l.timer.Reset(patience)
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
		l.server.handOver()
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

func (s *streamServer) cancelled(req *Request) {
	var p CancelledParams
	if req.Decode(&p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.inflight[p.RequestID.Canonical()]; cancel != nil {
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

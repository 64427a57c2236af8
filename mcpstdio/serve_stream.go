// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// StreamOptions configure [ServeStream]. Nil means the zero StreamOptions.
type StreamOptions struct {
	// Principal is the peer, or nil if it is not authenticated.
	Principal *mcp.Principal
	// MaxInFlight is the maximum number of requests that are served concurrently; more are
	// refused. If three times as many messages are being served, including refusals that
	// the peer has not read, reading pauses until there are fewer. 0 means 1024.
	MaxInFlight int
	// DrainTimeout is how long requests may continue after the end of the stream, or after
	// ctx is done. 0 means 10 seconds, negative not at all.
	DrainTimeout time.Duration
	// AskTimeout is how long a client of an older revision may take to answer a question. 0
	// means one hour, negative no limit.
	AskTimeout time.Duration
	// KeepAlive is the interval between pings to a client of an older revision. After three
	// consecutive pings without an answer, its session is closed. 0 means no pings.
	KeepAlive time.Duration
	// Logger receives diagnostic messages. Nil means the logger of the handler, if it is an
	// [mcp.Mux], an [mcp.Conn] or an [mcp.Upstream], with or without [mcp.Chain], and otherwise
	// slog.Default.
	Logger *slog.Logger
}

// ServeStream serves h to the peer of a stream, in all revisions, until the stream ends or
// ctx is done. It then ends subscriptions, lets requests in flight finish within
// DrainTimeout, and closes the stream. It returns nil after the end of the stream, and the
// reason otherwise.
func ServeStream(ctx context.Context, h mcp.Handler, stream transport.Stream, opts *StreamOptions) error {
	if stream == nil {
		return errors.New("mcpstdio: ServeStream: the stream is nil; make one with NewStream or transport.Pipe")
	}
	defer stream.Close()
	if isNilHandler(h) {
		return errNilHandler
	}
	s := newStreamServer(ctx, h, stream, opts)
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

var errNilHandler = errors.New("mcpstdio: the handler to serve is nil")

// isNilHandler reports whether h is nil or a nil HandlerFunc.
func isNilHandler(h mcp.Handler) bool {
	f, isFunc := h.(mcp.HandlerFunc)
	return h == nil || isFunc && f == nil
}

// streamServer serves one stream.
type streamServer struct {
	server   *server.Server
	stream   transport.Stream
	opts     StreamOptions
	session  *legacySession
	inFlight *server.InFlight // requests of all revisions
	ctx      context.Context  //nolint:containedctx // of all requests; while they drain it outlives that of ServeStream
	cancel   context.CancelCauseFunc

	listening  context.Context //nolint:containedctx // of subscriptions, which end before other requests
	stopListen context.CancelCauseFunc

	ended   chan struct{} // closed when nothing more will be read
	endedBy error         // read after ended

	mu      sync.Mutex
	active  int           // messages being served
	leaders bool          // a leader reads, or is about to
	idle    chan struct{} // closed when active is 0 while draining; nil before
}

func newStreamServer(ctx context.Context, h mcp.Handler, stream transport.Stream, opts *StreamOptions) *streamServer {
	s := &streamServer{stream: stream, leaders: true, ended: make(chan struct{})}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.DrainTimeout == 0 {
		s.opts.DrainTimeout = 10 * time.Second
	}
	s.server = server.New(h, &server.Options{
		MaxInFlight: s.opts.MaxInFlight,
		AskTimeout:  s.opts.AskTimeout, KeepAlive: s.opts.KeepAlive, Logger: s.opts.Logger,
	})
	s.inFlight = s.server.NewInFlight()
	s.session = newLegacySession(s)
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.listening, s.stopListen = context.WithCancelCause(s.ctx)
	return s
}

// Send implements [server.Sender].
func (s *streamServer) Send(ctx context.Context, message []byte) error {
	return s.stream.Write(ctx, message)
}

// origin returns the origin of a message of the stream.
func (s *streamServer) origin() server.Origin {
	return server.Origin{Principal: s.opts.Principal, InSession: s.session.Initialized()}
}

// write sends a message, unless it is empty. It only logs an error, because the reader will
// find the end of the stream.
func (s *streamServer) write(message []byte) {
	if len(message) == 0 {
		return
	}
	if err := s.stream.Write(s.ctx, message); err != nil {
		s.server.Logger.DebugContext(s.ctx, "mcp: message not written", "error", err)
	}
}

// enter counts a message as being served. It returns false if the server is draining.
func (s *streamServer) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		return false
	}
	s.active++
	return true
}

// enterLate counts a refusal as being served while the server drains, so that the stream is
// not closed before the refusal is written. It returns false if no message is being served
// any longer.
func (s *streamServer) enterLate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == 0 {
		return false
	}
	s.active++
	return true
}

func (s *streamServer) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	if !s.leaders && s.active < s.maxActive() {
		s.leaders = true
		go s.lead()
	}
	if s.active == 0 && s.idle != nil {
		close(s.idle)
	}
}

// maxActive returns the maximum number of messages that are served concurrently:
// MaxInFlight requests, and twice as many refusals and notifications.
func (s *streamServer) maxActive() int { return 3*s.server.MaxInFlight + 1 }

// drain ends subscriptions and questions, waits up to DrainTimeout for the remaining
// requests, and cancels those that are left.
func (s *streamServer) drain() {
	idle := s.startDraining()
	s.stopListen(mcp.ErrClosed)
	s.session.HangUp()
	if s.opts.DrainTimeout > 0 {
		timer := time.NewTimer(s.opts.DrainTimeout)
		defer timer.Stop()
		select {
		case <-idle:
		case <-timer.C:
		}
	}
	s.cancel(mcp.ErrClosed)
	s.session.Close()
}

// startDraining makes enter return false from now on. It returns a channel that is closed when no
// message is being served.
func (s *streamServer) startDraining() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = make(chan struct{})
	if s.active == 0 {
		close(s.idle)
	}
	return s.idle
}

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

	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// StreamOptions configure [ServeStream]. Nil means the zero StreamOptions.
type StreamOptions struct {
	// Principal is the peer, nil if it is not authenticated.
	Principal *mcp.Principal
	// MaxInFlight limits the requests that are served at once; more are refused. When
	// three times as many messages are being served, refusals that the peer does not
	// read included, nothing is read until there are fewer. 0 means 1024.
	MaxInFlight int
	// DrainTimeout is how long requests may go on after the end of the stream, or
	// after ctx is done. 0 means 10 seconds, negative not at all.
	DrainTimeout time.Duration
	// MaxRounds limits how often one request of a client of an older revision may ask.
	// 0 means 32.
	MaxRounds int
	// AskTimeout limits how long a client of an older revision may take to answer a
	// question. 0 means an hour, negative no limit.
	AskTimeout time.Duration
	// KeepAlive is the time between two pings to a client of an older revision. After
	// three in a row without an answer its session is closed. 0 means no pings.
	KeepAlive time.Duration
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

// ServeStream serves h to the peer of a stream, in all revisions, until the stream ends or
// ctx is done. It then ends subscriptions, lets the requests that are being served finish
// within DrainTimeout, closes the stream and returns nil after the end of the stream,
// otherwise the reason.
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

// isNilHandler reports whether h is nil, or a HandlerFunc without a function.
func isNilHandler(h mcp.Handler) bool {
	f, isFunc := h.(mcp.HandlerFunc)
	return h == nil || isFunc && f == nil
}

// streamServer serves one stream.
type streamServer struct {
	handler mcp.Handler
	stream  transport.Stream
	opts    StreamOptions
	session *legacySession
	ctx     context.Context //nolint:containedctx // of all requests; while they drain it outlives that of ServeStream
	cancel  context.CancelCauseFunc

	listening  context.Context //nolint:containedctx // of subscriptions, which end before other requests
	stopListen context.CancelCauseFunc

	ended   chan struct{} // closed when nothing more is read
	endedBy error         // read after ended

	mu       sync.Mutex
	inflight map[mcp.ID]context.CancelCauseFunc // requests of the newest revision
	active   int                                // messages being served
	leaders  bool                               // a leader reads, or is about to
	idle     chan struct{}                      // closed when active is 0 while draining; nil before
}

func newStreamServer(ctx context.Context, h mcp.Handler, stream transport.Stream, opts *StreamOptions) *streamServer {
	s := &streamServer{handler: h, stream: stream, leaders: true, ended: make(chan struct{}), inflight: map[mcp.ID]context.CancelCauseFunc{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.MaxInFlight <= 0 {
		s.opts.MaxInFlight = serving.MaxInFlight
	}
	if s.opts.DrainTimeout == 0 {
		s.opts.DrainTimeout = 10 * time.Second
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.Default()
	}
	s.session = newLegacySession(s)
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.listening, s.stopListen = context.WithCancelCause(s.ctx)
	return s
}

// Send implements [serving.Sender].
func (s *streamServer) Send(ctx context.Context, message []byte) error {
	return s.stream.Write(ctx, message)
}

// origin is that of all messages of the stream.
func (s *streamServer) origin() serving.Origin { return serving.Origin{Principal: s.opts.Principal} }

// write sends a message if there is one. If the stream cannot be written to, its reader
// will find the end.
func (s *streamServer) write(message []byte) {
	if len(message) == 0 {
		return
	}
	if err := s.stream.Write(s.ctx, message); err != nil {
		s.opts.Logger.DebugContext(s.ctx, "mcp: message not written", "error", err)
	}
}

// enter counts a message in, unless the server is draining.
func (s *streamServer) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		return false
	}
	s.active++
	return true
}

// enterLate counts a refusal in while the server drains, unless nothing is being served any
// more. The stream is not closed before the refusal is written.
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

// maxActive is how many messages are served at once: requests of either era, as many as
// may be in flight, and as many refusals and notifications.
func (s *streamServer) maxActive() int { return 3*s.opts.MaxInFlight + 1 }

// drain ends what would go on by itself, waits for the rest within a bound, and cancels
// what is left.
func (s *streamServer) drain() {
	idle := s.refuse()
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

// refuse lets no further message in, and returns a channel that is closed when none is
// being served.
func (s *streamServer) refuse() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = make(chan struct{})
	if s.active == 0 {
		close(s.idle)
	}
	return s.idle
}

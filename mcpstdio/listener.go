// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// ListenerOptions configure [ServeListener]. Nil means the zero ListenerOptions.
type ListenerOptions struct {
	// MaxConns is how many connections are served at once. More wait to be
	// accepted. 0 means 256.
	MaxConns int
	// MaxMessage is how many bytes a message may have. 0 means
	// [DefaultMaxMessage].
	MaxMessage int
	// WriteTimeout is how long a client may read nothing of what is written to
	// it before its connection breaks. 0 means 10 seconds.
	WriteTimeout time.Duration
	// Stream configures each connection; nil means the defaults of
	// [mcp.ServeStream].
	Stream *mcp.StreamOptions
}

// ServeListener serves h to the clients that connect to a listener, on a Unix
// domain socket say, until ctx is done or the listener fails. It then closes the
// listener, lets requests that are being served finish within the DrainTimeout of
// the stream options, and returns why. Whoever can connect is served: on a socket
// in the file system, its directory's permissions decide who that is.
func ServeListener(ctx context.Context, l net.Listener, h mcp.Handler, opts *ListenerOptions) error {
	s := &listenerServer{handler: h, log: slog.Default()}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.WriteTimeout = cmp.Or(s.opts.WriteTimeout, 10*time.Second)
	s.room = make(chan struct{}, cmp.Or(s.opts.MaxConns, 256))
	if s.opts.Stream != nil && s.opts.Stream.Logger != nil {
		s.log = s.opts.Stream.Logger
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	err := s.accept(ctx, l)
	cancel(err)
	_ = l.Close()
	s.conns.Wait()
	return context.Cause(ctx)
}

type listenerServer struct {
	handler mcp.Handler
	opts    ListenerOptions
	log     *slog.Logger
	room    chan struct{} // holds one for each connection
	conns   sync.WaitGroup
}

// accept serves connections until ctx is done or none can be accepted any more.
func (s *listenerServer) accept(ctx context.Context, l net.Listener) error {
	var pause time.Duration
	for {
		select {
		case s.room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		conn, err := l.Accept()
		if err == nil {
			pause = 0
			s.conns.Go(func() {
				defer func() { <-s.room }()
				s.serve(ctx, conn)
			})
			continue
		}
		<-s.room
		if ctx.Err() != nil || !isTemporary(err) {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.log.WarnContext(ctx, "mcpstdio: a connection was not accepted", "error", err, "pause", pause)
		within(pause, ctx.Done())
	}
}

func (s *listenerServer) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stream := NewStream(conn, &impatientWriter{conn, s.opts.WriteTimeout}, &StreamOptions{
		MaxMessage: s.opts.MaxMessage,
		Close:      conn.Close,
	})
	err := mcp.ServeStream(ctx, s.handler, stream, s.opts.Stream)
	if err != nil && ctx.Err() == nil {
		s.log.DebugContext(ctx, "mcpstdio: a connection broke", "client", conn.RemoteAddr(), "error", err)
	}
}

// isTemporary tells a shortage, of descriptors say, from the end of a listener.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// An impatientWriter breaks the connection when its peer reads nothing for a while:
// then who reads from it ends, too.
type impatientWriter struct {
	conn    net.Conn
	timeout time.Duration
}

func (w *impatientWriter) Write(b []byte) (written int, err error) {
	for written < len(b) && err == nil {
		part := b[written:min(len(b), written+flushSize)]
		if err = w.conn.SetWriteDeadline(time.Now().Add(w.timeout)); err == nil {
			var n int
			n, err = w.conn.Write(part)
			written += n
		}
	}
	if err != nil {
		_ = w.conn.Close()
	}
	return written, err
}

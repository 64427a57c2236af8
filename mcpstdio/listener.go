// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
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
	// HandshakeTimeout is how long a client may take to send its first message
	// after it connected. 0 or less means 10 seconds. It may then be silent for as
	// long as it likes.
	HandshakeTimeout time.Duration
	// InsecureTCP serves a listener on a TCP address, which ServeListener refuses
	// otherwise. Nothing on TCP says who connects: on a loopback address these are
	// all users and programs of the machine, and everything that one of them can
	// be made to connect to a port. Where it has to be TCP, pass a listener of
	// crypto/tls that requires client certificates, and set InsecureTCP as well,
	// since a listener does not say what it requires.
	InsecureTCP bool
	// Stream configures each connection; nil means the defaults of
	// [mcp.ServeStream].
	Stream *mcp.StreamOptions
}

// ServeListener serves h to the clients that connect to a listener, on a Unix
// domain socket say, until ctx is done or the listener fails. It then closes the
// listener, lets requests that are being served finish within the DrainTimeout of
// the stream options, and returns why.
//
// Every client that can connect is served. On a socket in the file system, the
// permissions of its directory decide which can; an abstract one, whose name begins
// with @, is open to every user of the machine. A TCP listener is refused with an
// error unless the options say InsecureTCP.
//
// The first line of a connection must be a JSON message. A connection that begins
// with anything else, as an HTTP request that a web page makes does, is closed at
// the first byte other than white space that shows it, and nothing after it is read.
func ServeListener(ctx context.Context, l net.Listener, h mcp.Handler, opts *ListenerOptions) error {
	s := &listenerServer{handler: h, log: slog.Default()}
	if opts != nil {
		s.opts = *opts
	}
	if addr := l.Addr(); !s.opts.InsecureTCP && addr != nil && strings.HasPrefix(addr.Network(), "tcp") {
		_ = l.Close()
		return fmt.Errorf("mcpstdio: %v is a TCP address, which does not say who connects: listen on a Unix socket, or set ListenerOptions.InsecureTCP", addr)
	}
	s.opts.WriteTimeout = cmp.Or(s.opts.WriteTimeout, 10*time.Second)
	if s.opts.HandshakeTimeout <= 0 {
		s.opts.HandshakeTimeout = 10 * time.Second
	}
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
	in := newOpeningReader(conn, s.opts.HandshakeTimeout)
	stream := NewStream(in, &impatientWriter{conn, s.opts.WriteTimeout}, &StreamOptions{
		MaxMessage: s.opts.MaxMessage,
		Close:      conn.Close,
	})
	err := mcp.ServeStream(ctx, s.handler, stream, s.opts.Stream)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, errOtherProtocol) || errors.Is(err, errNoMessage):
		s.log.WarnContext(ctx, "mcpstdio: a connection was refused", "client", conn.RemoteAddr(), "error", err)
	default:
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

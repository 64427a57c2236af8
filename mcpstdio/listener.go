// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
)

// core is the internal API of package mcp.
var core = mcp.Internal(seam.Key{})

// ListenerOptions configure [ServeListener]. Nil means the zero ListenerOptions.
type ListenerOptions struct {
	// MaxConns is the maximum number of connections that are served concurrently. Further
	// connections wait to be accepted. 0 or less means 256.
	MaxConns int
	// MaxMessage is the maximum length of a message in bytes. 0 means
	// [DefaultMaxMessage], negative no limit.
	MaxMessage int
	// InsecureTCP allows a listener on a TCP address, which ServeListener otherwise
	// refuses. TCP does not authenticate clients: on a loopback address, every user and
	// program of the machine can connect, and so can any program that can be made to
	// connect to a port. If you need TCP, pass a listener of crypto/tls that requires
	// client certificates. Even then InsecureTCP must be set, because a listener does not
	// report what it requires.
	InsecureTCP bool
	// Stream configures each connection. Nil means the defaults of [ServeStream].
	Stream *StreamOptions
}

// The clients of a socket are programs of the same machine, which answer within milliseconds.
const (
	// handshakeTimeout is how long a client may take to send its first message. After that it
	// may be silent indefinitely.
	handshakeTimeout = 10 * time.Second
	// writeTimeout is how long a client may leave what is written to it unread.
	writeTimeout = 10 * time.Second
)

// ServeListener serves h to the clients that connect to a listener, for example on a Unix
// domain socket, until ctx is done or the listener fails. It then closes the listener, lets
// requests in flight finish within the DrainTimeout of the stream options, and returns why
// it ended.
//
// Every client that can connect is served. For a socket in the file system, the permissions
// of its directory determine who can connect. An abstract socket, whose name begins with @,
// is open to every user of the machine. A TCP listener is refused with an error unless
// [ListenerOptions].InsecureTCP is set.
//
// The first line of a connection must be a JSON message. A connection that begins with
// anything else, such as an HTTP request from a web page, is closed at the first byte,
// other than white space, that cannot begin a message. Nothing after that byte is processed.
// A connection without a first message, or whose client does not read what is written to it,
// is closed after 10 seconds.
func ServeListener(ctx context.Context, h mcp.Handler, l net.Listener, opts *ListenerOptions) error {
	if l == nil {
		return errors.New("mcpstdio: ServeListener: the listener is nil; make one with net.Listen")
	}
	if isNilHandler(h) {
		_ = l.Close()
		return errNilHandler
	}
	s := &listenerServer{handler: h, log: core.LoggerOf(h)}
	if opts != nil {
		s.opts = *opts
	}
	if addr := l.Addr(); !s.opts.InsecureTCP && addr != nil && strings.HasPrefix(addr.Network(), "tcp") {
		_ = l.Close()
		return fmt.Errorf("mcpstdio: %v is a TCP address, which does not say who connects: listen on a Unix socket, or set ListenerOptions.InsecureTCP", addr)
	}
	if s.opts.MaxConns <= 0 {
		s.opts.MaxConns = 256
	}
	s.slots = make(chan struct{}, s.opts.MaxConns)
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

// A listenerServer serves the connections of a listener. TCP needs an option whatever the
// principal is: it is the same for all connections, so it proves nothing about one. A
// listener does not reveal whether it requires client certificates.
type listenerServer struct {
	handler mcp.Handler
	opts    ListenerOptions
	log     *slog.Logger
	slots   chan struct{} // holds one element for each connection
	conns   sync.WaitGroup
}

// accept serves connections until ctx is done or the listener fails.
func (s *listenerServer) accept(ctx context.Context, l net.Listener) error {
	failures := 0 // in a row
	for {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		conn, err := l.Accept()
		if err == nil {
			failures = 0
			s.conns.Go(func() {
				defer func() { <-s.slots }()
				s.serve(ctx, conn)
			})
			continue
		}
		<-s.slots
		if ctx.Err() != nil || !isTemporary(err) {
			return err
		}
		delay := async.Backoff(5*time.Millisecond, time.Second, failures)
		failures++
		s.log.WarnContext(ctx, "mcpstdio: a connection was not accepted", "error", err, "pause", delay)
		_ = async.Sleep(ctx, delay) // the loop checks ctx
	}
}

func (s *listenerServer) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	in := newOpeningReader(conn, handshakeTimeout)
	stream := newStream(in, &timeoutWriter{conn, writeTimeout}, &LineOptions{
		MaxMessage: s.opts.MaxMessage,
		Close:      conn.Close,
	})
	stream.isPatient = true // for writeTimeout
	err := ServeStream(ctx, s.handler, stream, s.opts.Stream)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, errOtherProtocol) || errors.Is(err, errNoMessage):
		s.log.WarnContext(ctx, "mcpstdio: a connection was refused", "client", conn.RemoteAddr(), "error", err)
	default:
		s.log.DebugContext(ctx, "mcpstdio: a connection broke", "client", conn.RemoteAddr(), "error", err)
	}
}

// isTemporary reports whether accepting may succeed later, for example after a shortage of
// file descriptors.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// A timeoutWriter writes to a connection. It closes the connection, which ends reading as
// well, if a write fails or the peer does not read for timeout.
type timeoutWriter struct {
	conn    net.Conn
	timeout time.Duration
}

func (w *timeoutWriter) Write(b []byte) (written int, err error) {
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

var errNoMessage = errors.New("no message came in time")

// blanks are the bytes of white space and of a byte order mark.
const blanks = " \t\r\n\xef\xbb\xbf"

// An openingReader reads from a connection that has just been accepted. It fails at the
// first byte that cannot begin a message, or if the first line takes too long. The first line
// must be JSON: a list of the words of other protocols would never be complete.
type openingReader struct {
	conn    net.Conn
	started bool // a message has begun
	done    bool // its first line has been read
}

func newOpeningReader(conn net.Conn, timeout time.Duration) *openingReader {
	_ = conn.SetReadDeadline(time.Now().Add(timeout))
	return &openingReader{conn: conn}
}

// Read implements [io.Reader].
func (r *openingReader) Read(b []byte) (int, error) {
	n, err := r.conn.Read(b)
	if r.done {
		return n, err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, errNoMessage
	}
	read := b[:n]
	if !r.started {
		for len(read) > 0 && strings.IndexByte(blanks, read[0]) >= 0 { // the mark may arrive in parts
			read = read[1:]
		}
		r.started = len(read) > 0
		if r.started && read[0] != '{' && read[0] != '[' {
			return 0, errOtherProtocol
		}
	}
	if bytes.IndexByte(read, '\n') >= 0 {
		r.done = true
		_ = r.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// closeTimeout bounds the time to close a connection.
const closeTimeout = 2 * time.Second

// clientConn is the part shared by the connections of both transports: it delivers messages
// to the receiver and ends the connection. A connection works in the goroutines of its
// callers and in those started by run; work counts both.
type clientConn struct {
	receive   transport.Receiver
	receiving sync.Mutex // held while receive is called
	work      async.Tracker

	ctx       context.Context // done when the connection ends; the cause is the reason
	cancel    context.CancelCauseFunc
	closeOnce sync.Once
	done      chan struct{} // closed by finish
	doneOnce  sync.Once
}

// newClientConn returns a connection whose background work uses the client trace of ctx.
func newClientConn(ctx context.Context, receive transport.Receiver) *clientConn {
	c := &clientConn{receive: receive, done: make(chan struct{})}
	traced := mcptrace.WithClientTrace(context.Background(), mcptrace.ClientTraceFromContext(ctx))
	c.ctx, c.cancel = context.WithCancelCause(traced)
	return c
}

// Done implements [transport.Conn].
func (c *clientConn) Done() <-chan struct{} { return c.done }

// Err implements [transport.Conn].
func (c *clientConn) Err() error { return context.Cause(c.ctx) }

// run calls f in a goroutine that close waits for. It returns false if the connection has ended.
func (c *clientConn) run(f func()) bool {
	if !c.work.Enter() {
		return false
	}
	go func() {
		defer c.work.Leave()
		f()
	}()
	return true
}

// deliver passes a message to the receiver, one at a time. Meanwhile the caller does not
// count as work, because the receiver may close the connection, which waits for all work.
func (c *clientConn) deliver(m *transport.Message) {
	c.work.Outside(func() {
		c.receiving.Lock()
		defer c.receiving.Unlock()
		if c.ctx.Err() == nil {
			c.receive(m)
		}
	})
}

// end ends the connection with the given reason, without waiting, and returns a channel
// that is closed when all work has finished.
func (c *clientConn) end(reason error) (drained <-chan struct{}) {
	c.cancel(reason)
	return c.work.Drain()
}

// close ends the connection, calls goodbye and waits at most closeTimeout for all work.
func (c *clientConn) close(goodbye func(ctx context.Context)) {
	c.closeOnce.Do(func() {
		drained := c.end(mcp.ErrClosed)
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		said := make(chan struct{})
		go func() { // it may outlive ctx, if the http.RoundTripper ignores its context
			defer close(said)
			goodbye(ctx)
		}()
		for _, ended := range []<-chan struct{}{said, drained} {
			select {
			case <-ended:
			case <-ctx.Done():
			}
		}
		c.finish()
	})
}

// finish closes Done.
func (c *clientConn) finish() { c.doneOnce.Do(func() { close(c.done) }) }

// callScope is the lifetime of the HTTP requests made for one call. It ends with the
// context of the call, or with the connection.
type callScope struct {
	conn         *clientConn
	ctx          context.Context // of the HTTP requests
	cancel       context.CancelCauseFunc
	stopCall     func() bool
	stopConn     func() bool
	isBackground bool // it continues without the call
}

// newScope returns the scope of a call. The caller must call end. The context of the scope
// has the values of ctx, for the RoundTripper.
func (c *clientConn) newScope(ctx context.Context) *callScope {
	s := &callScope{conn: c}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.stopConn = context.AfterFunc(c.ctx, func() { s.cancel(c.Err()) })
	s.stopCall = context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	if reason := cmp.Or(c.Err(), context.Cause(ctx)); reason != nil {
		s.cancel(reason) // immediately, because AfterFunc starts a goroutine
	}
	return s
}

// causeOf returns err or, if err is not nil and the scope has ended, the reason it ended.
func (s *callScope) causeOf(err error) error {
	if err != nil && s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

// end ends the scope, unless it continues in the background.
func (s *callScope) end() {
	if !s.isBackground {
		s.stopCall()
		s.stopConn()
		s.cancel(nil)
	}
}

// drainTimeout bounds how long an HTTP request continues after its response is no longer
// needed. It continues so that it ends cleanly and its network connection can be reused.
const drainTimeout = time.Second

// drainSize is the maximum number of bytes read from such a response.
const drainSize = 64 << 10

// endInBackground calls last in a goroutine of the connection and ends the scope when last
// returns. When the connection ends, it waits for last instead of cancelling the HTTP
// request, because net/http may confuse a request that is cancelled just as it completes
// with the next one on the same network connection.
func (s *callScope) endInBackground(last func()) {
	s.isBackground = true
	s.stopCall()
	s.stopConn()
	timer := time.AfterFunc(drainTimeout, func() { s.cancel(context.DeadlineExceeded) })
	f := func() {
		defer s.cancel(nil)
		defer timer.Stop()
		last()
	}
	if !s.conn.run(f) {
		s.cancel(s.conn.Err())
		f()
	}
}

// drain reads the rest of a stream in the background.
func (s *callScope) drain(res *http.Response) {
	s.endInBackground(func() {
		defer closeBody(res)
		_, _ = io.CopyN(io.Discard, res.Body, drainSize)
	})
}

// peer represents the server that a client is connected to, and sends HTTP requests to it.
type peer struct {
	url    *url.URL
	opts   *TransportOptions
	client *http.Client

	ownsConnections bool // no other client uses the network connections
}

// Peer describes the server; see [transport.Info]. It omits the query, which may contain a key.
func (p *peer) Peer() string {
	return "the server at " + p.url.Scheme + "://" + p.url.Host + p.url.Path
}

func newPeer(u *url.URL, opts *TransportOptions) *peer {
	p := &peer{url: u, opts: opts}
	var client http.Client
	if opts.Client != nil {
		client = *opts.Client
	} else {
		client.Transport, p.ownsConnections = newRoundTripper()
	}
	client.CheckRedirect = sameOrigin(client.CheckRedirect)
	p.client = &client
	return p
}

// idleConns is the maximum number of idle network connections kept for later calls. With
// the default of net/http, which is two, most concurrent calls would have to dial.
const idleConns = 64

// newRoundTripper returns a RoundTripper with its own network connections, unless the
// program has replaced http.DefaultTransport by one that cannot be cloned.
func newRoundTripper() (_ http.RoundTripper, ownsConnections bool) {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport, false
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = idleConns
	return t, true
}

// close closes idle network connections, unless other clients may use them.
func (p *peer) close() {
	if p.ownsConnections {
		p.client.CloseIdleConnections()
	}
}

// sameOrigin returns a CheckRedirect function that follows redirects only if they keep the
// origin and the method. Another origin must not see the message or headers that net/http
// does not know to be secret, and a POST that becomes a GET means something else.
func sameOrigin(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case origin(req.URL) != origin(via[0].URL) || req.Method != via[0].Method:
			return http.ErrUseLastResponse
		case next != nil:
			return next(req, via)
		case len(via) >= 10:
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
}

// origin returns the scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// post sends a message. h holds its headers except for those in the options. post modifies h.
func (p *peer) post(ctx context.Context, to *url.URL, h http.Header, message []byte) (*http.Response, error) {
	h.Set("Content-Type", header.JSON)
	h.Set("Accept", header.JSON+", "+header.EventStream)
	req := p.newRequest(http.MethodPost, to, h)
	req.ContentLength = int64(len(message))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(message)), nil }
	req.Body = io.NopCloser(bytes.NewReader(message))
	return p.do(req.WithContext(ctx))
}

// do sends an HTTP request, unless its context is done, which not every RoundTripper checks.
func (p *peer) do(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	res, err := p.client.Do(req)
	if err == nil && res.StatusCode == http.StatusSwitchingProtocols {
		// The body is the network connection, which net/http no longer ties to the context.
		closeBody(res)
		res.Body = http.NoBody
	}
	if err == nil && (res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden) {
		if t := mcptrace.ClientTraceFromContext(req.Context()); t != nil && t.Challenge != nil {
			t.Challenge(mcptrace.ChallengeInfo{Status: res.StatusCode, Header: res.Header})
		}
	}
	return res, err
}

// newRequest returns a request to a parsed URL. It adds the headers of the options to h,
// which takes precedence.
func (p *peer) newRequest(method string, to *url.URL, h http.Header) *http.Request {
	for key, values := range p.opts.Header {
		if _, ours := h[key]; !ours {
			h[key] = values
		}
	}
	u := *to
	return &http.Request{Method: method, URL: &u, Host: to.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h}
}

// readMessage reads a whole body of at most MaxMessage bytes.
func (p *peer) readMessage(res *http.Response) ([]byte, error) {
	limit := p.opts.MaxMessage
	if res.ContentLength > limit {
		return nil, ErrMessageTooLong
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, res.Body, limit))
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		err = ErrMessageTooLong
	}
	return withoutMark(body), err
}

// withoutMark returns text without the byte order mark that some servers put at its start.
func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(byteOrderMark)) }

// send posts a message that has no response. meaning interprets a refusal.
func (p *peer) send(ctx context.Context, to *url.URL, h http.Header, message []byte, meaning func(*StatusError) (*mcp.Error, error)) error {
	res, err := p.post(ctx, to, h, message)
	if err != nil {
		return fmt.Errorf("mcphttp: %w", err)
	}
	defer closeBody(res)
	if res.StatusCode/100 == 2 {
		if n := res.ContentLength; n > 0 && n <= drainSize {
			_, _ = io.CopyN(io.Discard, res.Body, n) // so that the network connection can be reused
		}
		return nil
	}
	refusal := p.readRefusal(res)
	if _, err := meaning(refusal); err != nil {
		return err
	}
	return refusal
}

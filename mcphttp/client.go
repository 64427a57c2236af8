// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// TransportOptions configure a client's connection. Nil means the zero TransportOptions.
type TransportOptions struct {
	// Client sends the requests. Its Timeout should be 0, because a timeout would end every
	// stream; use contexts to bound calls. Its CheckRedirect is called only for redirects
	// that stay within the server's origin and keep the method. The transport follows no
	// others, so messages and headers are never sent elsewhere. If Client is nil, the
	// transport uses its own.
	Client *http.Client
	// Header is sent with every request, for example Authorization. It cannot set the
	// headers of the protocol.
	Header http.Header
	// MaxMessage is the maximum size of a message from the server, in bytes. A longer
	// response fails its call with [ErrMessageTooLong]. 0 means 64 MiB, negative no limit.
	MaxMessage int64
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *TransportOptions) withDefaults() TransportOptions {
	var opts TransportOptions
	if o != nil {
		opts = *o
	}
	opts.Header = withoutProtocol(opts.Header)
	opts.MaxMessage = withDefault(opts.MaxMessage, 64<<20, unlimited64)
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// withoutProtocol returns a copy of h, with canonical keys, without the headers of the protocol.
func withoutProtocol(h http.Header) http.Header {
	if h == nil {
		return nil
	}
	kept := make(http.Header, len(h))
	for key, values := range h {
		if key = http.CanonicalHeaderKey(key); !header.IsProtocol(key) {
			kept[key] = slices.Clone(values)
		}
	}
	return kept
}

// NewTransport returns a [transport.Transport] that connects to the server at url over
// streamable HTTP of any revision. If the server rejects initialize the way a 2024-11-05
// server does, the connection falls back to HTTP+SSE, as with [NewSSETransport]. The
// options may be nil.
//
// Connect does not contact the server: every message is a separate HTTP request. The
// client's RoundTripper can read the values of the call's context.
//
// A modern call is cancelled by ending its HTTP request, a legacy call by
// notifications/cancelled. If a stream breaks off before the response and the server has
// sent an event ID, a legacy call resumes the stream. Otherwise the call fails with an
// error that wraps [io.ErrUnexpectedEOF]. Nothing is sent twice.
//
// The [transport.Receiver] is called by one goroutine at a time. It must not wait for a
// call on the same connection.
func NewTransport(url string, opts *TransportOptions) transport.Transport {
	return &httpTransport{url, opts.withDefaults(), func(ctx context.Context, p *peer, receive transport.Receiver) (transport.Conn, error) {
		return newHTTPWire(wire{newClientConn(ctx, receive), p}), nil
	}}
}

type httpTransport struct {
	url  string
	opts TransportOptions
	open func(ctx context.Context, p *peer, receive transport.Receiver) (transport.Conn, error)
}

// Connect implements [transport.Transport].
func (t *httpTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	u, err := url.Parse(t.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("mcphttp: %q is not the URL of an HTTP server, such as http://127.0.0.1:8080/mcp", redact.URL(t.url))
	}
	return t.open(ctx, newPeer(u, &t.opts), receive)
}

// wire is the part shared by the connections of both transports.
type wire struct {
	*clientConn

	peer *peer
}

// Info implements [transport.Conn].
func (w wire) Info() transport.Info { return transport.Info{Peer: w.peer.Peer()} }

// httpWire is a streamable HTTP connection. Modern messages are independent of each other.
type httpWire struct {
	wire

	legacy *sessionWire
}

func newHTTPWire(w wire) *httpWire { return &httpWire{w, newSessionWire(w)} }

// speaksModern reports whether a protocol version is of the modern era.
func speaksModern(version string) bool { return slices.Contains(mcp.ModernVersions(), version) }

// Info implements [transport.Conn].
func (w *httpWire) Info() transport.Info {
	info := w.wire.Info()
	info.NoStream = w.legacy.hasNoStream()
	return info
}

// Call implements [transport.Conn].
func (w *httpWire) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	if !w.work.Enter() {
		return nil, w.Err()
	}
	defer w.work.Leave()
	scope := w.newScope(ctx)
	defer scope.end()
	if scope.ctx.Err() != nil {
		return nil, context.Cause(scope.ctx)
	}
	var r *transport.Message
	var err error
	if speaksModern(m.Version) {
		r, err = w.callModern(scope, m)
	} else {
		r, err = w.legacy.call(ctx, scope, m)
	}
	if err != nil {
		return nil, scope.causeOf(err)
	}
	return r.Response()
}

// Send implements [transport.Conn].
func (w *httpWire) Send(ctx context.Context, m *transport.Outgoing) error {
	if !w.work.Enter() {
		return w.Err()
	}
	defer w.work.Leave()
	scope := w.newScope(ctx)
	defer scope.end()
	if speaksModern(m.Version) {
		return scope.causeOf(w.peer.send(scope.ctx, w.peer.url, modernHeader(m), m.Body, (*StatusError).asModern))
	}
	return scope.causeOf(w.legacy.send(ctx, scope, m))
}

// Close implements [transport.Conn].
func (w *httpWire) Close() error {
	w.close(w.legacy.deleteSession)
	w.peer.close()
	return nil
}

// modernHeader returns the headers that mirror a modern message.
func modernHeader(m *transport.Outgoing) http.Header {
	h := make(http.Header, 6+len(m.Headers))
	h.Set(header.Version, m.Version)
	if m.Method != "" {
		h.Set(header.Method, m.Method)
	}
	if m.Name != "" || core.IsNamed(m.Method) {
		h.Set(header.Name, transport.EncodeHeaderValue(m.Name))
	}
	for _, p := range m.Headers {
		h.Set(p.Key, transport.EncodeHeaderValue(p.Value))
	}
	return h
}

// callModern sends a modern request and returns its response.
func (w *httpWire) callModern(scope *callScope, m *transport.Outgoing) (*transport.Message, error) {
	res, err := w.peer.post(scope.ctx, w.peer.url, modernHeader(m), m.Body)
	if err != nil {
		return nil, fmt.Errorf("mcphttp: %w", err)
	}
	if res.StatusCode/100 != 2 {
		defer closeBody(res)
		return responseOf(m.ID)(w.peer.readRefusal(res).asModern())
	}
	r, err := w.readAnswer(scope, res, m.ID, &streamPosition{})
	return r, asUnanswered(err)
}

// asUnanswered marks the error of a stream that the server has ended without the response,
// and that is not resumed: like any body without one, it is not readable.
func asUnanswered(err error) error {
	if err == errBrokenOff { //nolint:errorlint // it is wrapped if the stream did not end cleanly
		return fmt.Errorf("%w: %w", transport.ErrUnreadable, err)
	}
	return err
}

// responseOf returns a function that converts the results of asModern or asLegacy to a
// response to the request id, or an error.
func responseOf(id mcp.ID) func(*mcp.Error, error) (*transport.Message, error) {
	return func(answer *mcp.Error, err error) (*transport.Message, error) {
		if err != nil {
			return nil, err
		}
		return errorResponse(id, answer), nil
	}
}

// readAnswer reads a successful HTTP response up to the response to a request, and delivers
// the messages before it.
func (w wire) readAnswer(scope *callScope, res *http.Response, id mcp.ID, pos *streamPosition) (*transport.Message, error) {
	if isStream(res) {
		return w.readStream(scope, res, id, id, pos)
	}
	defer closeBody(res)
	body, err := w.peer.readMessage(res)
	if err != nil {
		return nil, fmt.Errorf("mcphttp: the server's answer: %w", err)
	}
	if r := w.deliverAll(body, id, id); r != nil {
		return r, nil
	}
	return nil, noMessageError(res, body)
}

// deliverAll delivers the messages in data, except the response to the request want, which
// it returns. It returns nil if data does not contain that response. about is the request
// whose HTTP response carried data. Messages that cannot be read are delivered as well, so
// that they are reported.
func (c *clientConn) deliverAll(data []byte, want, about mcp.ID) (found *transport.Message) {
	for m := range transport.Messages(data) {
		if !m.IsResponse() || m.Err != nil {
			m.About = about
			c.deliver(&m)
		}
		// An error response that names another request, or none, may belong to this one.
		if m.IsResponse() && !want.IsZero() && (m.ID == want || unquoted(m.ID) == want || m.Error != nil) {
			m.ID = want
			found = &m
		}
	}
	return found
}

// unquoted returns the integer in a string ID, or the zero ID. Some servers return request
// IDs as strings.
func unquoted(id mcp.ID) mcp.ID {
	id, _ = transport.ParseID([]byte(strings.Trim(id.String(), `"`)))
	return id
}

func isStream(res *http.Response) bool {
	kind := res.Header.Get("Content-Type")
	switch kind {
	case header.EventStream:
		return true
	case header.JSON:
		return false
	}
	name, _, err := mime.ParseMediaType(kind)
	return err == nil && name == header.EventStream
}

func closeBody(res *http.Response) { _ = res.Body.Close() }

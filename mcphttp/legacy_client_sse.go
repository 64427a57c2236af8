// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// NewSSETransport returns a [transport.Transport] that connects to a server over HTTP+SSE,
// the deprecated transport of revision 2024-11-05. The client opens one event stream, on
// which the server sends all its messages, and posts messages to the URL in the first
// event, which must have the same origin. A connection ends with its stream. The options
// may be nil.
//
// Deprecated: HTTP+SSE is the transport of revision 2024-11-05, which the specification has
// replaced: use [NewTransport]. It works while that revision is supported.
func NewSSETransport(url string, opts *TransportOptions) transport.Transport {
	return &httpTransport{url, opts.withDefaults(), func(ctx context.Context, p *peer, receive transport.Receiver) (transport.Conn, error) {
		w, err := openSSEWire(ctx, wire{newClientConn(ctx, receive), p})
		if err != nil {
			return nil, err // not a nil *sseWire
		}
		return w, nil
	}}
}

// sseWire is an HTTP+SSE connection: one stream for all messages from the server, and a URL
// to post messages to. It ends with its stream.
type sseWire struct {
	wire

	endpoint *url.URL
	calls    async.Pending[mcp.ID, *transport.Message]
}

// openSSEWire opens the stream and waits for its first event or until ctx is done. The
// goroutine that reads the stream belongs to the connection.
func openSSEWire(ctx context.Context, base wire) (*sseWire, error) {
	w := &sseWire{wire: base}
	scope := w.newScope(context.WithoutCancel(ctx)) // the stream outlives ctx
	stop := context.AfterFunc(ctx, func() { scope.cancel(context.Cause(ctx)) })
	events, res, err := w.open(scope)
	if inTime := stop(); err == nil && !inTime {
		closeBody(res)
		err = context.Cause(ctx)
	}
	if err != nil {
		err = scope.causeOf(err)
		scope.end()
		return nil, err
	}
	if !w.run(func() { w.read(scope, res, events) }) {
		closeBody(res)
		scope.end()
		return nil, w.Err()
	}
	return w, nil
}

func (w *sseWire) open(scope *callScope) (*eventReader, *http.Response, error) {
	res, err := w.peer.get(scope.ctx, make(http.Header, 1))
	if err != nil {
		return nil, nil, fmt.Errorf("mcphttp: %w", err)
	}
	events := newEventReader(res.Body, w.peer.opts.MaxMessage)
	switch {
	case res.StatusCode != http.StatusOK:
		refusal := w.peer.readRefusal(res)
		if err = error(refusal); refusal.isUnauthorized() {
			err = refusal.withKind(transport.ErrUnauthorized)
		}
	case !isStream(res):
		err = fmt.Errorf("%w: the answer is %q, not an event stream", transport.ErrNotUnderstood, res.Header.Get("Content-Type"))
	default:
		w.endpoint, err = readEndpoint(events, res.Request.URL)
	}
	if err != nil {
		closeBody(res)
		return nil, nil, err
	}
	return events, res, nil
}

// readEndpoint reads the URL to post messages to. It must have the same origin as the
// stream, because a server must not choose where its client sends secrets.
func readEndpoint(events *eventReader, from *url.URL) (*url.URL, error) {
	e, err := events.next()
	for err == nil && e.isMessage() && len(e.data) == 0 {
		e, err = events.next()
	}
	if err != nil {
		return nil, brokenOff(err)
	}
	if e.kind != "endpoint" {
		return nil, fmt.Errorf("%w: the first event is not %q", transport.ErrNotUnderstood, "endpoint")
	}
	to, err := from.Parse(strings.TrimSpace(string(e.data)))
	if err != nil {
		return nil, fmt.Errorf("mcphttp: the endpoint: %w", err)
	}
	if origin(to) != origin(from) {
		return nil, fmt.Errorf("mcphttp: the endpoint %q is at another origin than %q", to, origin(from))
	}
	return to, nil
}

// read delivers the messages of the stream. When the stream ends, read ends the connection.
func (w *sseWire) read(scope *callScope, res *http.Response, events *eventReader) {
	defer scope.end()
	defer closeBody(res)
	for {
		e, err := events.next()
		switch {
		case err != nil:
			w.end(brokenOff(err))
			w.finish()
			return
		case e.isTooLong:
			w.handleMessage(e.unreadable())
		case e.isMessage() && len(e.data) > 0:
			for m := range transport.Messages(e.data) {
				w.handleMessage(m)
			}
		}
	}
}

// handleMessage passes a response to its call and delivers other messages. A response that
// cannot be read is delivered as well, so that it is reported. An error without an ID,
// which a server sends if it cannot read a request, is passed to the pending call if there
// is only one.
func (w *sseWire) handleMessage(m transport.Message) {
	if !m.IsResponse() || m.Err != nil {
		w.deliver(&m)
	}
	if !m.IsResponse() {
		return
	}
	if id, ok := w.calls.Only(); ok && m.ID.IsZero() && m.Error != nil {
		m.ID = id
	}
	if !w.calls.Deliver(m.ID, &m) {
		m.ID = unquoted(m.ID)
		w.calls.Deliver(m.ID, &m)
	}
}

// Call implements [transport.Conn].
func (w *sseWire) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	if speaksModern(m.Version) {
		return nil, transport.ErrNotUnderstood // no 2024-11-05 server does
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // nothing was sent that could be cancelled
	}
	response, remove := w.calls.Add(m.ID)
	defer remove()
	scope := w.newScope(ctx)
	defer scope.end()
	// Some servers answer the POST only after they have served the request.
	posted := make(chan error, 1)
	if !w.run(func() { posted <- w.post(scope, m.Body) }) {
		return nil, w.Err()
	}
	for posting := posted; ; {
		select {
		case r := <-response:
			if posting != nil {
				scope.endInBackground(func() { <-posted }) //nolint:errcheck // the call has its response
			}
			return r.Response()
		case err := <-posting:
			if err != nil && scope.ctx.Err() == nil {
				return responseOfError(m.ID, err)
			}
			posting = nil
		case <-scope.ctx.Done():
			if ctx.Err() != nil && w.ctx.Err() == nil && m.Method != methodInitialize {
				w.sendCancelled(ctx, m.ID, w.peer, w.post)
			}
			r, err := async.ReceivedOr(response, context.Cause(scope.ctx))
			if err != nil {
				return nil, err
			}
			return r.Response()
		}
	}
}

// responseOfError returns the JSON-RPC error in a refusal as the response, or err if the refusal
// means something else.
func responseOfError(id mcp.ID, err error) (*transport.Message, error) {
	if refusal, ok := errors.AsType[*StatusError](err); ok {
		return responseOf(id)(refusal.asLegacy(true))
	}
	return nil, err
}

func (w *sseWire) post(scope *callScope, body []byte) error {
	return w.peer.send(scope.ctx, w.endpoint, make(http.Header, 2), body, func(e *StatusError) (*mcp.Error, error) { return e.asLegacy(true) })
}

// Send implements [transport.Conn].
func (w *sseWire) Send(ctx context.Context, m *transport.Outgoing) error {
	if !w.work.Enter() {
		return w.Err()
	}
	defer w.work.Leave()
	scope := w.newScope(ctx)
	defer scope.end()
	return scope.causeOf(w.post(scope, m.Body))
}

// Close implements [transport.Conn].
func (w *sseWire) Close() error {
	w.close(func(context.Context) {})
	w.peer.close()
	return nil
}

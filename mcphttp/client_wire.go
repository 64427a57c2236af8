// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// httpWire is a connection in streamable HTTP. What it keeps from one message to
// the next belongs to the legacy era.
type httpWire struct {
	*inbox
	peer *peer

	mu      sync.Mutex
	session *clientSession
	old     *sseWire // what the connection goes on as, if not nil
}

func newHTTPWire(p *peer, receive mcp.Receiver) *httpWire {
	w := &httpWire{inbox: newInbox(receive), peer: p}
	w.session = w.newSession()
	return w
}

// speaksModern decides the era of a message.
func speaksModern(version string) bool { return slices.Contains(mcp.ModernVersions(), version) }

// Call implements [mcp.Wire].
func (w *httpWire) Call(ctx context.Context, m *mcp.Envelope) (*mcp.Response, error) {
	if !w.enter() {
		return nil, w.Err()
	}
	defer w.leave()
	if old := w.fallback(); old != nil {
		return old.Call(ctx, m)
	}
	x := w.exchange(ctx)
	defer x.end()
	r, err := w.call(ctx, x, m)
	return r, x.blame(err)
}

func (w *httpWire) call(ctx context.Context, x *exchange, m *mcp.Envelope) (*mcp.Response, error) {
	switch {
	case x.ctx.Err() != nil:
		return nil, context.Cause(x.ctx)
	case speaksModern(m.Version):
		return w.callModern(x, m)
	case m.Method == methodInitialize:
		return w.initialize(x, m)
	}
	return w.callLegacy(ctx, x, m)
}

// Send implements [mcp.Wire].
func (w *httpWire) Send(ctx context.Context, m *mcp.Envelope) error {
	if !w.enter() {
		return w.Err()
	}
	defer w.leave()
	if old := w.fallback(); old != nil {
		return old.Send(ctx, m)
	}
	x := w.exchange(ctx)
	defer x.end()
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	if speaksModern(m.Version) {
		return x.blame(w.peer.tell(x, w.peer.url, modernHeader(m), m.Body, (*StatusError).modern))
	}
	return x.blame(w.sendLegacy(x, m))
}

// Close implements [mcp.Wire].
func (w *httpWire) Close() error {
	w.close(w.deleteSession)
	w.peer.close()
	return nil
}

// fallback is the connection in the old transport, if it was fallen back to.
func (w *httpWire) fallback() *sseWire {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.old
}

// modernHeader mirrors what a modern message says of itself.
func modernHeader(m *mcp.Envelope) http.Header {
	h := make(http.Header, 6+len(m.Params))
	values := []string{m.Version, m.Method, ""} // in one allocation
	h[headerVersion] = values[0:1:1]
	if m.Method != "" {
		h[headerMethod] = values[1:2:2]
	}
	if m.Name != "" || hasNameHeader(m.Method) {
		values[2] = transport.EncodeHeaderValue(m.Name)
		h[headerName] = values[2:3:3]
	}
	for _, p := range m.Params {
		h.Set(p.Key, transport.EncodeHeaderValue(p.Value))
	}
	return h
}

// callModern makes a request that stands alone.
func (w *httpWire) callModern(x *exchange, m *mcp.Envelope) (*mcp.Response, error) {
	res, err := w.peer.post(x.ctx, w.peer.url, modernHeader(m), m.Body)
	if err != nil {
		return nil, fmt.Errorf("mcphttp: %w", err)
	}
	if res.StatusCode/100 != 2 {
		defer closeBody(res)
		return respond(m.ID)(w.peer.refusal(res).modern())
	}
	r, err := w.answer(x, res, m.ID, &position{})
	if err == errBrokenOff { //nolint:errorlint // it is wrapped if the stream did not end in good order
		err = fmt.Errorf("%w: %w", mcp.ErrUnreadable, err)
	}
	return r, err
}

// respond makes a response of what a refusal means.
func respond(id mcp.ID) func(*mcp.Error, error) (*mcp.Response, error) {
	return func(answer *mcp.Error, err error) (*mcp.Response, error) {
		if err != nil {
			return nil, err
		}
		return &mcp.Response{ID: id, Error: answer}, nil
	}
}

// answer reads a successful HTTP response until the response to a request, and
// delivers what comes before it.
func (w *httpWire) answer(x *exchange, res *http.Response, id mcp.ID, pos *position) (*mcp.Response, error) {
	if isStream(res) {
		return w.follow(x, res, id, id, pos)
	}
	defer closeBody(res)
	body, err := w.peer.readMessage(res)
	if err != nil {
		return nil, fmt.Errorf("mcphttp: the server's answer: %w", err)
	}
	if r := w.take(body, id, id); r != nil {
		return r, nil
	}
	return nil, noMessage(res, body)
}

// take delivers the messages in data, except the response to the request want,
// which it returns; nil means that it is not among them. About is the request that
// they belong to. What could not be read is delivered as well: somebody should know.
func (b *inbox) take(data []byte, want, about mcp.ID) (found *mcp.Response) {
	for m := range mcp.Messages(data) {
		r := m.Response
		if r == nil || m.Err != nil {
			b.deliver(m, about)
		}
		// An error that names another request, or none, can be related to this one.
		if r != nil && !want.IsZero() && (r.ID == want || r.Error != nil && m.Err == nil) {
			r.ID = want
			found = r
		}
	}
	return found
}

func isStream(res *http.Response) bool {
	kind := res.Header.Get("Content-Type")
	switch kind {
	case typeStream:
		return true
	case typeJSON:
		return false
	}
	name, _, err := mime.ParseMediaType(kind)
	return err == nil && name == typeStream
}

// drainSize is how much of a response is read of which nothing more is wanted.
const drainSize = 64 << 10

// drain reads the end of a stream in the background.
func (b *inbox) drain(x *exchange, res *http.Response) {
	b.detach(x, func() {
		defer closeBody(res)
		_, _ = io.CopyN(io.Discard, res.Body, drainSize) // nobody needs it
	})
}

func closeBody(res *http.Response) { _ = res.Body.Close() }

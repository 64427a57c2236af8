// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// The methods of the handshake.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
)

// clientSession is a session of the legacy era, as its client knows it.
type clientSession struct {
	ctx    context.Context // of its own stream; ends with the next session
	cancel context.CancelFunc

	settled chan struct{} // closed when the server has answered the GET for its own stream
	settle  func()

	mu      sync.Mutex
	id      string // "" if the server gave none
	version string // "" before the handshake is over
	silent  bool   // its own stream broke off, and was given up
}

func (w *httpWire) newSession() *clientSession {
	s := &clientSession{settled: make(chan struct{})}
	s.settle = sync.OnceFunc(func() { close(s.settled) })
	s.ctx, s.cancel = context.WithCancel(w.ctx)
	return s
}

// current is the session that is on.
func (w *httpWire) current() *clientSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// renew forgets the session and begins a new one.
func (w *httpWire) renew() *clientSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session.cancel()
	w.session = w.newSession()
	return w.session
}

func (s *clientSession) open(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
}

func (s *clientSession) negotiate(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

func (s *clientSession) negotiated() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (s *clientSession) identified() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id != ""
}

// mark notes whether the session's own stream was given up, and returns what was
// noted before.
func (s *clientSession) mark(silent bool) (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.silent = s.silent, silent
	return before
}

// header has the session's id, and the version where the revision has it.
func (s *clientSession) header(version string) http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := make(http.Header, 5)
	if s.id != "" {
		h[headerSession] = []string{s.id}
	}
	switch version {
	case "", mcp.Version20241105, mcp.Version20250326:
	default:
		h[headerVersion] = []string{version}
	}
	return h
}

// initialize opens a session in place of the one before.
func (w *httpWire) initialize(x *exchange, m *mcp.Envelope) (*mcp.Response, error) {
	s := w.renew()
	res, err := w.peer.post(x.ctx, w.peer.url, s.header(""), m.Body)
	if err != nil {
		return nil, fmt.Errorf("mcphttp: %w", err)
	}
	if res.StatusCode/100 == 2 {
		s.open(res.Header.Get(headerSession))
		return w.goOn(x, s, res, m.ID)
	}
	defer closeBody(res)
	refusal := w.peer.refusal(res)
	if old := w.fallBack(x.ctx, refusal); old != nil {
		return old.Call(x.ctx, m)
	}
	if refusal.answer == nil && refusal.aboutMessage() {
		return nil, refusal.of(mcp.ErrNotUnderstood)
	}
	return respond(m.ID)(refusal.legacy(false))
}

// fallBackTime is how long a server that refuses initialize may take to show that
// it speaks the transport of 2024-11-05.
const fallBackTime = 5 * time.Second

// fallBack goes on in the transport of 2024-11-05, if it was in the way of a server
// of that age that initialize was refused, and if it is one.
func (w *httpWire) fallBack(ctx context.Context, refusal *StatusError) *sseWire {
	switch refusal.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return nil
	}
	if refusal.understood() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, fallBackTime)
	defer cancel()
	old, err := openSSEWire(ctx, w.peer, w.inbox)
	if err != nil {
		w.peer.opts.Logger.DebugContext(ctx, "mcphttp: initialize was refused, and there is no endpoint event either", "error", err)
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.old = old
	return old
}

// callLegacy makes a request in the session. The server is told when its caller
// does not wait any more: that the HTTP request ends does not tell it.
func (w *httpWire) callLegacy(ctx context.Context, x *exchange, m *mcp.Envelope) (*mcp.Response, error) {
	s := w.current()
	res, err := w.peer.post(x.ctx, w.peer.url, s.header(m.Version), m.Body)
	var r *mcp.Response
	switch {
	case err != nil:
		err = fmt.Errorf("mcphttp: %w", err)
	case res.StatusCode/100 == 2:
		r, err = w.goOn(x, s, res, m.ID)
	default:
		defer closeBody(res)
		return respond(m.ID)(w.peer.refusal(res).legacy(s.identified()))
	}
	switch {
	case err != nil && ctx.Err() != nil && w.ctx.Err() == nil:
		w.cancelled(ctx, m.ID, w.peer, func(x *exchange, body []byte) error {
			return w.peer.tell(x, w.peer.url, s.header(m.Version), body, s.refused)
		})
	case err == nil && s.mark(false):
		w.run(func() { w.listen(s) })
	}
	return r, err
}

// goOn reads the answer to a request, and comes back for it if it breaks off.
func (w *httpWire) goOn(x *exchange, s *clientSession, res *http.Response, id mcp.ID) (*mcp.Response, error) {
	var pos position
	r, err := w.answer(x, res, id, &pos)
	if err != nil && pos.last != "" {
		return w.comeBack(x, s, id, id, &pos, err)
	}
	return r, err
}

// sendLegacy sends a notification or a response. The end of the handshake opens the
// stream of the session that belongs to no request.
func (w *httpWire) sendLegacy(x *exchange, m *mcp.Envelope) error {
	s := w.current()
	if err := w.peer.tell(x, w.peer.url, s.header(m.Version), m.Body, s.refused); err != nil {
		return err
	}
	if m.Method == methodInitialized {
		s.negotiate(m.Version)
		w.run(func() { w.listen(s) })
		s.awaitStream(x.ctx)
	}
	return nil
}

// settleTime is how long the handshake waits for the session's own stream. There
// are proxies that hold its head back until there is something on it.
const settleTime = 500 * time.Millisecond

// awaitStream waits until the server has answered the GET: what it asks on its own
// stream while that is not there is lost.
func (s *clientSession) awaitStream(ctx context.Context) {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-s.settled:
	case <-timer.C:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// refused is what a refusal means for a message that is sent in the session.
func (s *clientSession) refused(e *StatusError) (*mcp.Error, error) { return e.legacy(s.identified()) }

// listen follows the stream of a session that belongs to no request, while the
// server has one. One that was given up is tried again when the server has been
// heard of.
func (w *httpWire) listen(s *clientSession) {
	x := w.exchange(s.ctx)
	defer x.end()
	var pos position
	_, err := w.attach(x, s, mcp.ID{}, mcp.ID{}, &pos)
	pos.opened = true // or should have been
	_, err = w.comeBack(x, s, mcp.ID{}, mcp.ID{}, &pos, err)
	if x.ctx.Err() != nil {
		return
	}
	s.mark(errors.Is(err, errBrokenOff))
	if errors.Is(err, mcp.ErrSessionLost) {
		w.deliver(mcp.Message{}, mcp.ID{}) // who only listens would not find out
	}
	w.peer.opts.Logger.Debug("mcphttp: the server's own stream is not followed any more", "error", err)
}

// deleteSession tells the server that the session is over.
func (w *httpWire) deleteSession(ctx context.Context) {
	s := w.current()
	if !s.identified() {
		return
	}
	if res, err := w.peer.delete(ctx, s.header(s.negotiated())); err == nil {
		closeBody(res)
	}
}

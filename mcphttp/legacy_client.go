// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// The methods of the handshake.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
)

// clientSession is the client's state of a session of the legacy era.
type clientSession struct {
	ctx    context.Context // of the standalone stream; done when the session ends
	cancel context.CancelFunc

	streamAnswered    chan struct{} // closed when the server has answered the GET for the standalone stream
	setStreamAnswered func()

	mu              sync.Mutex
	id              string // "" if the server sent none
	version         string // "" until the handshake is complete
	hasLostStream   bool   // the standalone stream broke off, and reconnecting failed
	isStreamRefused bool   // the server has no standalone stream
}

// sessionWire is the part of a streamable HTTP connection that handles the older revisions.
type sessionWire struct {
	wire

	mu      sync.Mutex
	session *clientSession
	opening *clientSession // replaces session after the handshake; nil unless one is in progress
	old     *sseWire       // the HTTP+SSE connection; nil unless the server speaks only that
}

func newSessionWire(w wire) *sessionWire {
	s := &sessionWire{wire: w}
	s.session = s.newSession()
	return s
}

// call sends a request and returns its response.
func (w *sessionWire) call(ctx context.Context, scope *callScope, m *transport.Outgoing) (*transport.Message, error) {
	if old := w.fallback(); old != nil {
		return old.Call(ctx, m)
	}
	if m.Method == methodInitialize {
		return w.initialize(scope, m)
	}
	return w.callInSession(ctx, scope, m)
}

// fallback returns the HTTP+SSE connection, or nil if there has been no fallback.
func (w *sessionWire) fallback() *sseWire {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.old
}

func (w *sessionWire) newSession() *clientSession {
	s := &clientSession{streamAnswered: make(chan struct{})}
	s.setStreamAnswered = sync.OnceFunc(func() { close(s.streamAnswered) })
	s.ctx, s.cancel = context.WithCancel(w.ctx)
	return s
}

// currentSession returns the session used for calls. During a handshake, that is the
// previous session, which the server no longer knows.
func (w *sessionWire) currentSession() *clientSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// newestSession returns the session being opened by a handshake, or the current one if no
// handshake is in progress.
func (w *sessionWire) newestSession() *clientSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.opening, w.session)
}

// openSession returns a new session for a handshake. It cancels the session of an unfinished one.
func (w *sessionWire) openSession() *clientSession {
	s := w.newSession()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opening != nil {
		w.opening.cancel()
	}
	w.opening = s
	return s
}

// beginSession makes s the current session, unless another handshake has started since.
func (w *sessionWire) beginSession(s *clientSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opening == s {
		w.session.cancel()
		w.session, w.opening = s, nil
	}
}

func (s *clientSession) setID(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
}

func (s *clientSession) hasID() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id != ""
}

func (s *clientSession) setVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

func (s *clientSession) negotiatedVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// setStreamLost records whether the standalone stream is lost, and returns the previous value.
func (s *clientSession) setStreamLost(lost bool) (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.hasLostStream = s.hasLostStream, lost
	return before
}

func (s *clientSession) setStreamRefused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isStreamRefused = true
}

func (s *clientSession) hasNoStream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isStreamRefused
}

// header returns the headers of a message: the session ID and, if the revision has that
// header, the version.
func (s *clientSession) header(version string) http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := make(http.Header, 5)
	if s.id != "" {
		h.Set(header.Session, s.id)
	}
	if revision.Parse(version) > revision.R202503 {
		h.Set(header.Version, version)
	}
	return h
}

// meaning interprets the refusal of a message of the session.
func (s *clientSession) meaning(e *StatusError) (*mcp.Error, error) {
	return e.asLegacy(s.hasID())
}

// asLegacy interprets the refusal of a legacy message: it returns an error response or an error.
func (e *StatusError) asLegacy(inSession bool) (*mcp.Error, error) {
	switch {
	case e.isUnauthorized():
		return nil, e.withKind(transport.ErrUnauthorized)
	case inSession && e.isSessionUnknown():
		return nil, e.withKind(transport.ErrSessionLost)
	case e.answer != nil && !e.lacksScope():
		return e.response(), nil
	}
	return nil, e
}

// isSessionUnknown reports whether the server does not know the session of a message. The
// specification requires status 404, but after a restart many servers answer 400 instead,
// including those built with the official Python and TypeScript SDKs. Only the text shows
// that the session is the reason. Errors about params are excluded, because they may
// mention a session of a tool. Servers built with the official Python or TypeScript SDK
// answer 400 after a restart. Not every 400 counts, because servers use it for invalid
// arguments, too.
func (e *StatusError) isSessionUnknown() bool {
	switch e.Status {
	case http.StatusNotFound:
		return !e.isModern()
	case http.StatusBadRequest:
		isAboutParams := e.answer != nil && e.answer.Code == mcp.CodeInvalidParams
		text := strings.ToLower(e.Body)
		return !e.isModern() && !isAboutParams && (strings.Contains(text, "session") || strings.Contains(text, "not initialized"))
	}
	return false
}

// initialize opens a session. It replaces the previous session at the end of the handshake,
// because calls must not be made in a session that is not open.
func (w *sessionWire) initialize(scope *callScope, m *transport.Outgoing) (*transport.Message, error) {
	s := w.openSession()
	res, err := w.peer.post(scope.ctx, w.peer.url, s.header(""), m.Body)
	if err != nil {
		return nil, fmt.Errorf("mcphttp: %w", err)
	}
	if res.StatusCode/100 == 2 {
		s.setID(res.Header.Get(header.Session))
		return w.readOrResume(scope, s, res, m.ID)
	}
	defer closeBody(res)
	refusal := w.peer.readRefusal(res)
	if old := w.fallBack(scope.ctx, refusal); old != nil {
		return old.Call(scope.ctx, m)
	}
	if refusal.answer == nil && refusal.isAboutMessage() {
		return nil, refusal.withKind(transport.ErrNotUnderstood)
	}
	return responseOf(m.ID)(refusal.asLegacy(false))
}

// fallbackTimeout bounds the time to open an HTTP+SSE stream after initialize was rejected.
const fallbackTimeout = 5 * time.Second

// fallBack switches the connection to HTTP+SSE if the server rejects initialize the way a
// 2024-11-05 server does, and speaks HTTP+SSE. Otherwise it returns nil.
func (w *sessionWire) fallBack(ctx context.Context, refusal *StatusError) *sseWire {
	switch refusal.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return nil
	}
	if refusal.isModern() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, fallbackTimeout)
	defer cancel()
	old, err := openSSEWire(ctx, w.wire)
	if err != nil {
		w.peer.opts.Logger.DebugContext(ctx, "mcphttp: initialize was refused, and there is no endpoint event either", "error", err)
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.old = old
	return old
}

// callInSession sends a request of the session and returns its response. If the context of
// the call is done first, callInSession notifies the server, which does not treat the end
// of the HTTP request as a cancellation.
func (w *sessionWire) callInSession(ctx context.Context, scope *callScope, m *transport.Outgoing) (*transport.Message, error) {
	s := w.currentSession()
	res, err := w.peer.post(scope.ctx, w.peer.url, s.header(m.Version), m.Body)
	var r *transport.Message
	switch {
	case err != nil:
		err = fmt.Errorf("mcphttp: %w", err)
	case res.StatusCode/100 == 2:
		r, err = w.readOrResume(scope, s, res, m.ID)
	default:
		defer closeBody(res)
		return responseOf(m.ID)(s.meaning(w.peer.readRefusal(res)))
	}
	switch {
	case err != nil && ctx.Err() != nil && w.ctx.Err() == nil:
		w.sendCancelled(ctx, m.ID, w.peer, func(scope *callScope, body []byte) error {
			return w.peer.send(scope.ctx, w.peer.url, s.header(m.Version), body, s.meaning)
		})
	case err == nil && s.setStreamLost(false):
		w.run(func() { w.listen(s) })
	}
	return r, err
}

// cancelTimeout bounds the time to notify the server that a call was cancelled.
const cancelTimeout = 5 * time.Second

// sendCancelled notifies the server, in the background, that a call was cancelled. The
// reason is the cause of ctx, the context of the call.
func (c *clientConn) sendCancelled(ctx context.Context, id mcp.ID, p *peer, send func(scope *callScope, body []byte) error) {
	body := transport.AppendCancelled(nil, id, context.Cause(ctx).Error())
	ctx = context.WithoutCancel(ctx)
	c.run(func() {
		ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
		defer cancel()
		scope := c.newScope(ctx)
		defer scope.end()
		if err := send(scope, body); err != nil {
			p.opts.Logger.DebugContext(ctx, "mcphttp: the server could not be notified that a call was cancelled", "error", err)
		}
	})
}

// readOrResume reads the response to a request, and resumes its stream if it breaks off.
func (w *sessionWire) readOrResume(scope *callScope, s *clientSession, res *http.Response, id mcp.ID) (*transport.Message, error) {
	var pos streamPosition
	r, err := w.readAnswer(scope, res, id, &pos)
	if err != nil && pos.lastID != "" {
		r, err = w.reconnect(scope, s, id, id, &pos, err)
	}
	return r, asUnanswered(err)
}

// send sends a notification or a response. The message that ends the handshake also opens
// the standalone stream of the session.
func (w *sessionWire) send(ctx context.Context, scope *callScope, m *transport.Outgoing) error {
	if old := w.fallback(); old != nil {
		return old.Send(ctx, m)
	}
	s := w.newestSession()
	if err := w.peer.send(scope.ctx, w.peer.url, s.header(m.Version), m.Body, s.meaning); err != nil {
		return err
	}
	if m.Method == methodInitialized {
		s.setVersion(m.Version)
		w.beginSession(s)
		w.run(func() { w.listen(s) })
		s.awaitStream(scope.ctx)
	}
	return nil
}

// streamTimeout bounds how long the handshake waits for the standalone stream. Some proxies
// hold its header back until there is data on it. A question sent before the stream exists
// would be lost, but a proxy that holds back headers must not delay the connection for
// longer.
const streamTimeout = 500 * time.Millisecond

// awaitStream waits until the server has answered the GET for the standalone stream,
// because questions sent on the stream before that are lost.
func (s *clientSession) awaitStream(ctx context.Context) {
	select {
	case <-s.streamAnswered:
	case <-time.After(streamTimeout):
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// listen reads the standalone stream of a session for as long as the server provides one.
// If reconnecting fails, the next successful call starts listen again.
func (w *sessionWire) listen(s *clientSession) {
	scope := w.newScope(s.ctx)
	defer scope.end()
	var pos streamPosition
	_, err := w.openStream(scope, s, mcp.ID{}, mcp.ID{}, &pos)
	pos.isOpened = true // or should have been
	_, err = w.reconnect(scope, s, mcp.ID{}, mcp.ID{}, &pos, err)
	if scope.ctx.Err() != nil {
		return
	}
	s.setStreamLost(errors.Is(err, errBrokenOff))
	if errors.Is(err, transport.ErrSessionLost) {
		w.deliver(&transport.Message{Lost: true}) // otherwise a client that only listens would not notice
	}
	w.peer.opts.Logger.Debug("mcphttp: the server's standalone stream is no longer read", "error", err)
}

// hasNoStream reports whether the server is known to have no standalone stream.
func (w *sessionWire) hasNoStream() bool {
	return w.fallback() == nil && w.newestSession().hasNoStream()
}

// deleteSession asks the server to delete the session.
func (w *sessionWire) deleteSession(ctx context.Context) {
	s := w.newestSession()
	if !s.hasID() {
		return
	}
	if res, err := w.peer.delete(ctx, s.header(s.negotiatedVersion())); err == nil {
		closeBody(res)
	}
}

// get requests an event stream.
func (p *peer) get(ctx context.Context, h http.Header) (*http.Response, error) {
	h.Set("Accept", header.EventStream)
	return p.do(p.newRequest(http.MethodGet, p.url, h).WithContext(ctx))
}

func (p *peer) delete(ctx context.Context, h http.Header) (*http.Response, error) {
	return p.do(p.newRequest(http.MethodDelete, p.url, h).WithContext(ctx))
}

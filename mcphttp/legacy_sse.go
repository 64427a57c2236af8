// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// An SSEHandler serves HTTP+SSE, the transport of 2024-11-05: the client opens an event
// stream with GET, on which the server sends everything, and posts its messages to a URL
// that the first event names. The specification has deprecated it; it is for old clients.
// It must be made by [NewSSEHandler].
//
// One SSEHandler serves both methods on one path. A session ends with its stream, and the
// stream with the authentication of its caller, if that time is known.
type SSEHandler struct {
	mcp       mcp.Handler
	opts      Options
	guard     guard
	requests  tracker
	deadlines deadlineCheck

	killed context.Context // ends when Shutdown is called, and with it all sessions
	kill   context.CancelCauseFunc

	mu       sync.Mutex
	sessions map[string]*sseSession
	callers  callers
}

// NewSSEHandler returns an SSEHandler that serves h. The options may be nil. Those about
// sessions that outlive a connection have no effect here. It panics as [NewHandler] does.
func NewSSEHandler(h mcp.Handler, opts *Options) *SSEHandler {
	mustBeHandler("NewSSEHandler", h)
	o := opts.withDefaults()
	s := &SSEHandler{mcp: &abortHandler{h}, opts: o, guard: newGuard(&o), sessions: map[string]*sseSession{}, callers: callers{}}
	s.killed, s.kill = context.WithCancelCause(context.Background())
	return s
}

// sseSession is one event stream and the session on it.
type sseSession struct {
	legacy *legacyserver.Session
	out    *eventWriter
	cancel context.CancelFunc // ends the stream

	initialized    chan struct{} // closed after the handshake
	setInitialized func()
	listening      chan struct{} // closed when its subscription is in place, or never will be
	setListening   func()
}

func newSSESession(legacy *legacyserver.Session, out *eventWriter, cancel context.CancelFunc) *sseSession {
	s := &sseSession{legacy: legacy, out: out, cancel: cancel, initialized: make(chan struct{}), listening: make(chan struct{})}
	s.setInitialized = sync.OnceFunc(func() { close(s.initialized) })
	s.setListening = sync.OnceFunc(func() { close(s.listening) })
	return s
}

// Send implements [serving.Sender].
func (s *sseSession) Send(_ context.Context, message []byte) error {
	err := s.out.send(typedEvent("message", string(message)))
	if err != nil {
		s.cancel()
	}
	return err
}

// beat sends a heartbeat.
func (s *sseSession) beat() {
	if s.out.send(commentEvent()) != nil {
		s.cancel()
	}
}

// mustBeMade panics if NewSSEHandler did not make the handler.
func (h *SSEHandler) mustBeMade() {
	made.Check(h != nil && h.sessions != nil, "mcphttp: an SSEHandler", "NewSSEHandler")
}

// ServeHTTP implements [http.Handler].
func (h *SSEHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mustBeMade()
	h.deadlines.check(w, r, h.opts.Logger)
	w = limitTime(w, r, &h.opts)
	body, ok := receive(w, r, &h.guard, &h.opts)
	if !ok {
		return
	}
	if !h.requests.enter() {
		writeError(w, http.StatusServiceUnavailable, errShutdown)
		return
	}
	defer h.requests.leave()
	switch r.Method {
	case http.MethodGet:
		h.serveStream(w, r)
	case http.MethodPost:
		h.serveMessage(w, r, body)
	default:
		w.Header().Set("Allow", "GET, POST")
		writeError(w, http.StatusMethodNotAllowed, mcp.Errorf(mcp.CodeInvalidRequest, "the endpoint takes GET and POST"))
	}
}

// Sessions yields the sessions that are open at the moment of the call, in no order.
func (h *SSEHandler) Sessions() iter.Seq[*mcp.Session] {
	h.mustBeMade()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*mcp.Session, 0, len(h.sessions))
	for _, s := range h.sessions {
		all = append(all, s.legacy.Public())
	}
	return slices.Values(all)
}

// sessionParam is the query parameter that names a session in the URL for messages.
const sessionParam = "sessionId"

// serveStream opens and serves one session.
func (h *SSEHandler) serveStream(w http.ResponseWriter, r *http.Request) {
	if !requireStream(w, r) {
		return
	}
	ctx, cancel := context.WithCancel(contextWithValues(r.Context(), &requestValues{http: r}))
	defer cancel()
	defer context.AfterFunc(h.killed, cancel)()
	defer afterExpiry(r, cancel)()
	id := rand.Text()
	out := newEventWriter(w, r, h.opts.WriteTimeout)
	defer out.close()
	s := newSSESession(legacyserver.New(h.mcp, h.opts.legacy(id, principalOf(r))), out, cancel)
	defer s.legacy.Close()
	defer context.AfterFunc(s.legacy.Context(), cancel)()
	c := h.addSession(id, s, callerOf(r))
	if c == nil {
		writeUnavailable(w, mcp.ID{}, errTooManySessions)
		return
	}
	defer h.removeSession(id, c)
	h.runSession(ctx, originOf(r), s, id)
}

// runSession sends the URL for messages and then what belongs to no request, until ctx is
// done. The URL is relative to that of the stream, so that it is right behind any proxy.
func (h *SSEHandler) runSession(ctx context.Context, from serving.Origin, s *sseSession, id string) {
	if s.out.send(typedEvent("endpoint", "?"+sessionParam+"="+id)) != nil {
		return
	}
	defer startHeartbeat(&h.opts, s).stop()
	defer s.setListening()
	select {
	case <-ctx.Done():
	case <-s.initialized:
		s.legacy.Listen(ctx, from, s, s.setListening)
	}
}

// addSession adds a session. It returns nil if there are too many: their streams keep all
// sessions in use, so none can make room.
func (h *SSEHandler) addSession(id string, s *sseSession, key callerKey) *caller {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions) >= h.opts.MaxSessions || h.callers.count(key) >= h.opts.MaxSessionsPerCaller {
		return nil
	}
	h.sessions[id] = s
	return h.callers.add(key)
}

func (h *SSEHandler) removeSession(id string, c *caller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, id)
	h.callers.remove(c)
}

// sessionOf returns the session of a message, or nil if it is not known or belongs to
// another caller.
func (h *SSEHandler) sessionOf(r *http.Request) *sseSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[r.URL.Query().Get(sessionParam)]
	if s == nil || !s.legacy.Public().Principal().Is(principalOf(r)) {
		return nil
	}
	return s
}

// serveMessage accepts one message. A response goes to the stream of the session.
func (h *SSEHandler) serveMessage(w http.ResponseWriter, r *http.Request, body []byte) {
	s := h.sessionOf(r)
	if s == nil {
		writeError(w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the session is not known, or not any more: open a stream by GET"))
		return
	}
	ctx := detachedContext(r, new(requestValues))
	if transport.IsBatch(body) && s.legacy.Batches() {
		h.serveInBackground(ctx, s, func() serving.Call { return s.legacy.AcceptBatch(ctx, body, originOf(r)) })
		writeAccepted(w)
		return
	}
	m, err := transport.ParseMessage(body)
	if err != nil {
		writeMessage(w, http.StatusBadRequest, core.AppendError(nil, m.ID, err))
		return
	}
	h.dispatch(ctx, s, m, originOf(r))
	writeAccepted(w)
}

// dispatch serves a request in the background, because the client waits for the response
// to its POST. It serves other messages before it returns. Those of the handshake are
// among them: clients send the second without waiting for the answer to the first, and
// must miss no change that comes after it.
func (h *SSEHandler) dispatch(ctx context.Context, s *sseSession, m transport.Message, from serving.Origin) {
	if m.IsRequest() && !legacyserver.IsInitialize(&m) {
		h.serveInBackground(ctx, s, func() serving.Call { return s.legacy.Accept(ctx, m, from) })
		return
	}
	s.serve(ctx, s.legacy.Accept(ctx, m, from))
	if legacyserver.IsInitialized(&m) && s.legacy.Initialized() {
		s.setInitialized()
		select {
		case <-s.listening:
		case <-RequestFromContext(ctx).Context().Done():
		}
	}
}

// serve serves a call and sends the response.
func (s *sseSession) serve(ctx context.Context, call serving.Call) {
	call.Serve(s)
	if message := call.Append(nil); len(message) > 0 {
		_ = s.Send(ctx, message) // a client that has gone needs no response
	}
}

// serveInBackground accepts a request now, in the order in which requests arrive, and
// serves it in a goroutine that Shutdown waits for.
func (h *SSEHandler) serveInBackground(ctx context.Context, s *sseSession, accept func() serving.Call) {
	if !h.requests.enter() {
		return
	}
	call := accept()
	go func() {
		defer h.requests.leave()
		s.serve(ctx, call)
	}()
}

// Shutdown ends all sessions and waits for their requests to end. If ctx is done before
// that, it returns ctx's error.
func (h *SSEHandler) Shutdown(ctx context.Context) error {
	h.mustBeMade()
	drained := h.requests.drain()
	h.kill(mcp.ErrClosed)
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

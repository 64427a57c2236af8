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

	"github.com/go-psi/psi/mcp"
)

// An SSEHandler serves the transport of 2024-11-05: an event stream by GET, on
// which the server says everything, and messages by POST, to a URL that the
// stream names first. The specification has deprecated it; it is for old clients.
//
// One SSEHandler serves both methods on one path. A session ends with its stream, and
// that with the authentication of its caller, if its end is known.
type SSEHandler struct {
	mcp   mcp.Handler
	opts  Options
	guard guard

	pulse pulse

	ctx  context.Context // of all sessions
	kill context.CancelCauseFunc

	mu       sync.Mutex
	sessions map[string]*sseSession
	callers  callers
	tracker  tracker
}

// NewSSEHandler makes an SSEHandler. Of the options, those about sessions that
// outlive a connection have no meaning here.
func NewSSEHandler(h mcp.Handler, opts *Options) *SSEHandler {
	o := opts.withDefaults()
	s := &SSEHandler{mcp: &abortable{h}, opts: o, guard: newGuard(&o), sessions: map[string]*sseSession{}, callers: callers{}}
	s.pulse.interval = o.Heartbeat
	s.ctx, s.kill = context.WithCancelCause(context.Background())
	return s
}

// sseSession is one event stream and the conversation on it.
type sseSession struct {
	legacy *mcp.Legacy
	out    output
	beat   beat
	end    context.CancelFunc

	ready     chan struct{} // closed after the handshake
	once      sync.Once
	listening chan struct{} // closed when changes are told of, or never will be
}

// Send implements [mcp.Sender].
func (s *sseSession) Send(_ context.Context, message []byte) error {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	err := s.out.message(message)
	if err != nil {
		s.end()
	}
	return err
}

// ServeHTTP implements http.Handler.
func (h *SSEHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w = limitTime(w, r, &h.opts)
	body, ok := receive(w, r, &h.guard, &h.opts)
	if !ok {
		return
	}
	if !h.tracker.enter() {
		writeProblem(w, http.StatusServiceUnavailable, errShutdown)
		return
	}
	defer h.tracker.leave()
	switch r.Method {
	case http.MethodGet:
		h.serveStream(w, r)
	case http.MethodPost:
		h.serveMessage(w, r, body)
	default:
		w.Header().Set("Allow", "GET, POST")
		writeProblem(w, http.StatusMethodNotAllowed, mcp.Errorf(mcp.CodeInvalidRequest, "the endpoint takes GET and POST"))
	}
}

// Sessions yields the sessions that are open at this moment, in no order.
func (h *SSEHandler) Sessions() iter.Seq[*mcp.Session] {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*mcp.Session, 0, len(h.sessions))
	for _, s := range h.sessions {
		all = append(all, s.legacy.Session())
	}
	return slices.Values(all)
}

// sessionParam is the query parameter that names a session in the URL for
// messages.
const sessionParam = "sessionId"

// serveStream serves one session.
func (h *SSEHandler) serveStream(w http.ResponseWriter, r *http.Request) {
	if !acceptable(r.Header).stream {
		writeProblem(w, http.StatusNotAcceptable, mcp.Errorf(mcp.CodeInvalidRequest, "the client must accept %s", typeStream))
		return
	}
	if !canFlush(w) {
		writeProblem(w, http.StatusInternalServerError, cannotStream(w))
		return
	}
	ctx, cancel := context.WithCancel(withRequest(r))
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	if expiry := atExpiry(r, cancel); expiry != nil {
		defer expiry.Stop()
	}
	id := rand.Text()
	s := &sseSession{
		legacy: mcp.NewLegacy(h.mcp, h.opts.legacy(id, PrincipalOf(r))),
		end:    cancel,
		ready:  make(chan struct{}), listening: make(chan struct{}),
	}
	s.out.of(w, r, h.opts.WriteTimeout)
	defer s.legacy.Close()
	defer context.AfterFunc(s.legacy.Context(), cancel)()
	c := h.enter(id, s, callerOf(r))
	if c == nil {
		writeUnavailable(w, mcp.ID{}, errTooManySessions)
		return
	}
	defer h.leave(id, c)
	h.converse(ctx, originOf(r), s, id)
}

// converse names the URL for messages, relative to that of the stream so that it
// is right behind any proxy, and then tells what belongs to no request.
func (h *SSEHandler) converse(ctx context.Context, from mcp.Origin, s *sseSession, id string) {
	s.out.mu.Lock()
	err := s.out.named("endpoint", "?"+sessionParam+"="+id)
	s.out.mu.Unlock()
	if err != nil {
		return
	}
	h.pulse.start(&s.beat, s)
	defer s.beat.stop()
	listening := sync.OnceFunc(func() { close(s.listening) })
	defer listening()
	select {
	case <-ctx.Done():
	case <-s.ready:
		_ = s.legacy.Listen(ctx, from, s, listening) // why it ended does not matter here
	}
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	s.out.err = mcp.ErrNotDelivered // the response must not be written to any more
}

func (s *sseSession) heartbeat() {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if s.out.comment() != nil {
		s.end()
	}
}

// message writes an event of the type that this transport has for all messages.
func (o *output) message(m []byte) error { return o.named("message", string(m)) }

// enter adds a session, or returns nil if there are too many. Its stream keeps each
// session in use, so that none of them can make room.
func (h *SSEHandler) enter(id string, s *sseSession, key callerKey) *caller {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions) >= h.opts.MaxSessions || h.callers.sessions(key) >= h.opts.MaxSessionsPerCaller {
		return nil
	}
	h.sessions[id] = s
	return h.callers.add(key)
}

func (h *SSEHandler) leave(id string, c *caller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, id)
	h.callers.remove(c)
}

func (h *SSEHandler) sessionOf(r *http.Request) *sseSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[r.URL.Query().Get(sessionParam)]
	if s == nil || !s.legacy.Session().Principal().Is(PrincipalOf(r)) {
		return nil
	}
	return s
}

// serveMessage takes one message; its answer, if it has one, goes to the stream.
func (h *SSEHandler) serveMessage(w http.ResponseWriter, r *http.Request, body []byte) {
	s := h.sessionOf(r)
	if s == nil {
		writeProblem(w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the session is not known, or not any more: open a stream by GET"))
		return
	}
	ctx := legacyContext(r)
	if mcp.IsBatch(body) && s.legacy.Batches() {
		h.later(ctx, s, func() mcp.Admitted { return s.legacy.AdmitBatch(ctx, body, originOf(r)) })
		accepted(w)
		return
	}
	m, err := mcp.ParseMessage(body)
	if err != nil {
		writeResponse(w, http.StatusBadRequest, mcp.AppendErrorResponse(nil, m.ID, err))
		return
	}
	if m.Request != nil {
		m.Request.Principal, m.Request.Header = PrincipalOf(r), r.Header
	}
	h.take(ctx, s, m)
	accepted(w)
}

// take serves a request in the background, since the client waits for the end of
// its POST; anything else has been dealt with when it returns. So has the handshake:
// clients send the rest of it without waiting for its answer, and miss no change
// that comes after it.
func (h *SSEHandler) take(ctx context.Context, s *sseSession, m mcp.Message) {
	if m.Request != nil && !m.Request.IsNotification() && !m.IsInitialize() {
		h.later(ctx, s, func() mcp.Admitted { return s.legacy.Admit(ctx, m) })
		return
	}
	s.say(ctx, s.legacy.Serve(ctx, nil, m, s))
	if m.IsInitialized() && s.legacy.Initialized() {
		s.once.Do(func() { close(s.ready) })
		select {
		case <-s.listening:
		case <-RequestFrom(ctx).Context().Done():
		}
	}
}

func (s *sseSession) say(ctx context.Context, message []byte) {
	if len(message) > 0 {
		_ = s.Send(ctx, message) // a client that is gone needs no answer
	}
}

// later serves in the background what is admitted now.
func (h *SSEHandler) later(ctx context.Context, s *sseSession, admit func() mcp.Admitted) {
	if !h.tracker.enter() {
		return
	}
	admitted := admit()
	go func() {
		defer h.tracker.leave()
		s.say(ctx, admitted.Serve(nil, s))
	}()
}

// Shutdown ends all sessions and waits for their requests to end, until ctx is
// done.
func (h *SSEHandler) Shutdown(ctx context.Context) error {
	idle := h.tracker.refuse()
	h.kill(mcp.ErrClosed)
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

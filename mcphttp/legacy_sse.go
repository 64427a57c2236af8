// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
)

// An SSEHandler serves HTTP+SSE, the transport of revision 2024-11-05: the client opens an
// event stream with GET, on which the server sends all its messages, and posts messages to
// the URL in the first event. The specification has deprecated this transport; it is for
// old clients. Use [NewSSEHandler] to create an SSEHandler.
//
// One SSEHandler serves both methods on one path. A session ends with its stream. The
// stream ends when the authentication of its caller expires, if that time is known.
type SSEHandler struct {
	endpoint *endpoint

	mu       sync.Mutex
	sessions map[string]*sseSession
	callers  callers
}

// NewSSEHandler returns an SSEHandler that serves h. The options may be nil. Options for
// sessions that outlive a connection have no effect. NewSSEHandler panics in the same cases
// as [NewHandler].
//
// Deprecated: HTTP+SSE is the transport of revision 2024-11-05, which the specification has
// replaced: use [NewHandler]. It works while that revision is supported.
func NewSSEHandler(h mcp.Handler, opts *Options) *SSEHandler {
	mustBeHandler("NewSSEHandler", h)
	o := opts.withDefaults(h)
	return &SSEHandler{endpoint: newEndpoint(h, &o), sessions: map[string]*sseSession{}, callers: newCallers(o.Sessions.Replay)}
}

// mustBeMade panics unless the SSEHandler was created by NewSSEHandler.
func (h *SSEHandler) mustBeMade() {
	made.Check(h != nil && h.endpoint != nil, "mcphttp: an SSEHandler", "NewSSEHandler")
}

// sseSession is an event stream and its session.
type sseSession struct {
	legacy *server.Session
	out    *eventWriter
	cancel context.CancelFunc // ends the stream
	stream inFlight

	initialized    chan struct{} // closed after the handshake
	setInitialized func()
	listening      chan struct{} // closed when the subscription is in place, or never will be
	setListening   func()
}

func newSSESession(legacy *server.Session, out *eventWriter, cancel context.CancelFunc) *sseSession {
	s := &sseSession{legacy: legacy, out: out, cancel: cancel, initialized: make(chan struct{}), listening: make(chan struct{})}
	s.stream.response, s.stream.cancel = s, func(error) { cancel() }
	s.setInitialized = sync.OnceFunc(func() { close(s.initialized) })
	s.setListening = sync.OnceFunc(func() { close(s.listening) })
	return s
}

// Send implements [server.Sender].
func (s *sseSession) Send(_ context.Context, message []byte) error {
	err := s.out.Send(typedEvent("message", string(message)))
	if err != nil {
		s.cancel()
	}
	return err
}

// Beat implements [beater].
func (s *sseSession) Beat() {
	if s.out.SendComment() != nil {
		s.cancel()
	}
}

// ServeHTTP implements [http.Handler].
func (h *SSEHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mustBeMade()
	w = h.endpoint.limitTime(w, r)
	body, ok := h.endpoint.receive(w, r)
	if !ok {
		return
	}
	if !h.endpoint.Requests.Enter() {
		writeError(w, http.StatusServiceUnavailable, errShutdown)
		return
	}
	defer h.endpoint.Requests.Leave()
	switch r.Method {
	case http.MethodGet:
		h.serveStream(w, r)
	case http.MethodPost:
		h.serveMessage(w, r, body)
	default:
		writeNotAllowed(w, "GET, POST", "the endpoint takes GET and POST")
	}
}

// Sessions yields the sessions open at the time of the call, in no particular order.
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

// leftovers describes what the handler still holds for sessions. It returns "" if it holds
// nothing, as must be the case after Shutdown.
func (h *SSEHandler) leftovers() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions) == 0 && len(h.callers.byKey) == 0 {
		return ""
	}
	return fmt.Sprintf("%d sessions, %d callers", len(h.sessions), len(h.callers.byKey))
}

// sessionParam is the query parameter that names a session in the URL for messages.
const sessionParam = "sessionId"

// serveStream opens and serves one session.
func (h *SSEHandler) serveStream(w http.ResponseWriter, r *http.Request) {
	if _, ok := chooseFormats(w, r, formats{Stream: true}); !ok {
		return
	}
	ctx, cancel := context.WithCancel(withValues(r.Context(), &httpValues{HTTP: r}))
	defer cancel()
	defer afterExpiry(r, cancel)()
	out := h.endpoint.newEventWriter(w, r)
	defer out.Close()
	id := rand.Text()
	s, c := h.addSession(id, r, out, cancel)
	if s == nil {
		writeUnavailable(w, mcp.ID{}, errTooManySessions)
		return
	}
	defer h.removeSession(id, c)
	defer s.legacy.Close()
	defer context.AfterFunc(s.legacy.Context(), cancel)()
	h.runSession(ctx, originOf(r), s, messageURL(r, id))
}

// messageURL returns the URL for the messages of a session whose stream r opens. It is
// relative to the URL of the stream, so that it is correct behind a proxy that adds or
// removes a prefix. It has the last segment of the path, because java.net.URI and others
// resolve a URL that is only a query by RFC 2396, which drops that segment.
func messageURL(r *http.Request, id string) string {
	path := r.URL.EscapedPath()
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil { // what the client sent, before http.StripPrefix
		path = u.EscapedPath()
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	if strings.Contains(last, ":") || last == "" && path != "" {
		last = "./" + last // "a:b" would be a scheme
	}
	return last + "?" + sessionParam + "=" + id
}

// runSession sends the URL for messages and then the messages that belong to no request,
// until ctx is done.
func (h *SSEHandler) runSession(ctx context.Context, from server.Origin, s *sseSession, messages string) {
	if s.out.Send(typedEvent("endpoint", messages)) != nil {
		return
	}
	h.endpoint.InFlight.add(&s.stream)
	defer h.endpoint.InFlight.remove(&s.stream)
	defer s.setListening()
	select {
	case <-ctx.Done():
	case <-s.initialized:
		s.legacy.Listen(ctx, from, s, s.setListening)
	}
}

// addSession adds a session. It returns nil if there are too many. No session can make
// room, because all of them are in use by their streams.
func (h *SSEHandler) addSession(id string, r *http.Request, out *eventWriter, cancel context.CancelFunc) (*sseSession, *caller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := callerOf(r)
	if len(h.sessions) >= h.endpoint.Sessions.Max || h.callers.count(key) >= h.endpoint.Sessions.MaxPerCaller {
		return nil, nil
	}
	c := h.callers.add(key)
	details := server.Details{ID: id, QuestionPrefix: "psi-" + id[:10], Principal: PrincipalOf(r), Reserve: c.subscribed.reserve}
	s := newSSESession(h.endpoint.Server.NewSession(details, nil), out, cancel)
	h.sessions[id] = s
	return s, c
}

func (h *SSEHandler) removeSession(id string, c *caller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, id)
	h.callers.remove(c)
}

// sessionOf returns the session of a message, or nil if it is unknown or belongs to another caller.
func (h *SSEHandler) sessionOf(r *http.Request) *sseSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[r.URL.Query().Get(sessionParam)]
	if s == nil || !s.legacy.Public().Principal().Is(PrincipalOf(r)) {
		return nil
	}
	return s
}

// serveMessage accepts one message. A response to it is sent on the stream of the session.
func (h *SSEHandler) serveMessage(w http.ResponseWriter, r *http.Request, body []byte) {
	s := h.sessionOf(r)
	if s == nil {
		writeError(w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the session is unknown or has ended: open a stream by GET"))
		return
	}
	c := h.endpoint.Server.Accept(body, server.Origin{Principal: PrincipalOf(r), Header: r.Header, IsLegacy: true})
	switch {
	case c.IsUnreadable():
		writeRefusal(w, http.StatusBadRequest, c)
		return
	case c.IsBatch() && !s.legacy.Batches():
		writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object"))
		return
	}
	h.dispatch(detachedContext(r, new(httpValues)), r, s, c)
	writeAccepted(w)
}

// dispatch serves a request in the background, because the client waits for the response to
// its POST. It serves other messages before it returns, including those of the handshake:
// clients send the second one without waiting for the answer to the first, and must not
// miss a change that comes after it.
func (h *SSEHandler) dispatch(ctx context.Context, r *http.Request, s *sseSession, c *server.Call) {
	if c.IsBatch() || c.IsRequest() && !c.IsHandshake() {
		h.serveInBackground(ctx, s, c)
		return
	}
	s.legacy.Enter(ctx, c)
	s.serve(ctx, c)
	if c.CompletesHandshake() && s.legacy.Initialized() {
		s.setInitialized()
		select {
		case <-s.listening:
		case <-r.Context().Done():
		}
	}
}

// serve serves a call and sends the response.
func (s *sseSession) serve(ctx context.Context, call *server.Call) {
	call.Serve(s)
	if message := call.Append(nil); len(message) > 0 {
		_ = s.Send(ctx, message) // a disconnected client needs no response
	}
}

// serveInBackground accepts a request immediately, so that requests are accepted in order
// of arrival, and serves it in a goroutine that Shutdown waits for.
func (h *SSEHandler) serveInBackground(ctx context.Context, s *sseSession, call *server.Call) {
	if !h.endpoint.Requests.Enter() {
		return
	}
	s.legacy.Enter(ctx, call)
	go func() {
		defer h.endpoint.Requests.Leave()
		s.serve(ctx, call)
	}()
}

// Shutdown ends all sessions and waits for the requests in flight. If ctx is done first,
// Shutdown returns ctx's error.
func (h *SSEHandler) Shutdown(ctx context.Context) error {
	h.mustBeMade()
	drained := h.endpoint.Close()
	h.endpoint.Kill()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

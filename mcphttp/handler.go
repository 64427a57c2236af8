// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/go-psi/psi/mcp"
)

// The headers of the protocol, canonical.
const (
	headerVersion     = "Mcp-Protocol-Version"
	headerMethod      = "Mcp-Method"
	headerName        = "Mcp-Name"
	headerSession     = "Mcp-Session-Id"
	headerLastEventID = "Last-Event-ID"
)

// A Handler serves an [mcp.Handler] as streamable HTTP, to clients of 2026-07-28
// and, with sessions, of 2025-03-26 to 2025-11-25. It is made by [NewHandler].
type Handler struct {
	mcp      mcp.Handler
	opts     Options
	guard    guard
	sessions *sessions

	ctx   context.Context // of the streams of sessions; ends when the server begins to shut down
	close context.CancelCauseFunc

	hard context.Context // of all requests
	kill context.CancelCauseFunc

	pulse     pulse
	requests  tracker
	inflight  inflight
	listening inflight // subscriptions of the modern era
}

// NewHandler makes a Handler; opts may be nil.
func NewHandler(h mcp.Handler, opts *Options) *Handler {
	o := opts.withDefaults()
	s := &Handler{mcp: &abortable{h}, opts: o, guard: newGuard(&o)}
	s.ctx, s.close = context.WithCancelCause(context.Background())
	s.hard, s.kill = context.WithCancelCause(context.Background())
	s.pulse.interval = o.Heartbeat
	s.listening.expires = true
	s.sessions = newSessions(s.mcp, &s.opts)
	return s
}

// abortable lets a handler panic as handlers of net/http do to give up.
type abortable struct{ mcp.Handler }

func (a *abortable) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(mcp.ErrAbortHandler)
		default:
			panic(v)
		}
	}()
	return a.Handler.ServeMCP(ctx, req)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.requests.refusing() && h.serveLate(w, r) {
		return
	}
	if !admit(w, r, &h.requests, &h.guard) {
		return
	}
	defer h.requests.leave()
	switch r.Method {
	case http.MethodPost:
		h.servePost(w, r)
	case http.MethodGet:
		h.serveGet(w, r)
	case http.MethodDelete:
		h.serveDelete(w, r)
	case http.MethodOptions:
		w.Header().Set("Allow", allowed)
		w.WriteHeader(http.StatusNoContent)
	default:
		notAllowed(w, "the endpoint takes POST, GET and DELETE")
	}
}

// admit lets a request in, which then has to leave, or refuses it.
func admit(w http.ResponseWriter, r *http.Request, t *tracker, g *guard) bool {
	if why := g.check(r); why != "" {
		writeProblem(w, http.StatusForbidden, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
		return false
	}
	if !t.enter() {
		writeProblem(w, http.StatusServiceUnavailable, errShutdown)
		return false
	}
	return true
}

var errShutdown = mcp.Errorf(mcp.CodeInternalError, "the server is shutting down")

const allowed = "POST, GET, DELETE, OPTIONS"

func notAllowed(w http.ResponseWriter, why string) {
	w.Header().Set("Allow", allowed)
	writeProblem(w, http.StatusMethodNotAllowed, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
}

// servePost reads one message and decides its era.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request) {
	if contentType := r.Header.Get("Content-Type"); !isJSON(contentType) {
		writeProblem(w, http.StatusUnsupportedMediaType, mcp.Errorf(mcp.CodeInvalidRequest, "the Content-Type must be %s, not %q", typeJSON, contentType))
		return
	}
	body, err := readBody(w, r, h.opts.MaxBody)
	if err != nil {
		writeBodyProblem(w, err)
		return
	}
	if mcp.IsBatch(body) {
		h.serveBatch(w, r, body)
		return
	}
	m, err := mcp.ParseMessage(body)
	if m.Request != nil {
		m.Request.Principal, m.Request.Header = PrincipalOf(r), r.Header
	}
	switch {
	case err != nil:
		writeResponse(w, http.StatusBadRequest, mcp.AppendErrorResponse(nil, m.ID, err))
	case m.Request != nil && isModern(r.Header, &m):
		h.serveModern(w, r, m.Request)
	default:
		h.serveLegacy(w, r, m)
	}
}

// isModern reports whether a message belongs to the modern era: it says so
// itself, or its header does. A client that opens a session never means it.
func isModern(header http.Header, m *mcp.Message) bool {
	if m.Request.IsModern() {
		return true
	}
	return slices.Contains(mcp.ModernVersions(), header.Get(headerVersion)) && !m.IsInitialize() && header.Get(headerSession) == ""
}

// readBody reads the whole body, in one allocation if its length is known.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	if n := r.ContentLength; n >= 0 && n <= preallocate {
		body := make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
}

// preallocate is up to which length a client is believed before it has sent the
// body.
const preallocate = 1 << 20

func writeBodyProblem(w http.ResponseWriter, err error) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeProblem(w, http.StatusRequestEntityTooLarge, mcp.Errorf(mcp.CodeInvalidRequest, "the body is longer than %d bytes", tooLarge.Limit))
		return
	}
	writeProblem(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeParseError, "the body could not be read"))
}

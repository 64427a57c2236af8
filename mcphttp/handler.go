// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
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
	w = limitTime(w, r, &h.opts)
	if h.requests.refusing() && !h.mayHelp(r) {
		writeProblem(w, http.StatusServiceUnavailable, errShutdown)
		return
	}
	body, ok := receive(w, r, &h.guard, &h.opts)
	if !ok {
		return
	}
	if !h.requests.enter() {
		h.serveLate(w, r, body)
		return
	}
	defer h.requests.leave()
	switch r.Method {
	case http.MethodPost:
		h.servePost(w, r, body)
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

var errShutdown = mcp.Errorf(mcp.CodeInternalError, "the server is shutting down")

const allowed = "POST, GET, DELETE, OPTIONS"

func notAllowed(w http.ResponseWriter, why string) {
	w.Header().Set("Allow", allowed)
	writeProblem(w, http.StatusMethodNotAllowed, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
}

// servePost serves one message, whose era it decides, or a batch.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request, body []byte) {
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
// itself, or its header does, whatever session it names besides. A client that opens a
// session never means it.
func isModern(header http.Header, m *mcp.Message) bool {
	if m.Request.IsModern() {
		return true
	}
	return slices.Contains(mcp.ModernVersions(), header.Get(headerVersion)) && !m.IsInitialize()
}

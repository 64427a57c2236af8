// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-psi/psi/mcp"
)

// The headers of the protocol, in canonical form.
const (
	headerVersion     = "Mcp-Protocol-Version"
	headerMethod      = "Mcp-Method"
	headerName        = "Mcp-Name"
	headerSession     = "Mcp-Session-Id"
	headerLastEventID = "Last-Event-ID"
)

// A Handler serves an [mcp.Handler] as streamable HTTP, to clients of 2026-07-28
// and, with sessions, of 2025-03-26 to 2025-11-25. Use [NewHandler] to create one.
type Handler struct {
	mcp      mcp.Handler
	opts     Options
	guard    guard
	sessions *sessions
	requests tracker

	// closing ends when Shutdown is called, and with it subscriptions and the streams of
	// sessions. killed ends when Shutdown returns, and with it all other requests.
	closing, killed context.Context
	close, kill     context.CancelCauseFunc
}

// NewHandler returns a Handler that serves h. The options may be nil.
func NewHandler(h mcp.Handler, opts *Options) *Handler {
	o := opts.withDefaults()
	s := &Handler{mcp: &abortHandler{h}, opts: o, guard: newGuard(&o)}
	s.closing, s.close = context.WithCancelCause(context.Background())
	s.killed, s.kill = context.WithCancelCause(context.Background())
	s.sessions = newSessions(s.mcp, &s.opts)
	return s
}

// abortHandler lets a handler panic with [http.ErrAbortHandler].
type abortHandler struct{ mcp.Handler }

// ServeMCP implements [mcp.Handler].
func (a *abortHandler) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
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

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w = limitTime(w, r, &h.opts)
	if h.closing.Err() != nil && !h.mayServeLate(r) {
		writeError(w, http.StatusServiceUnavailable, errShutdown)
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
		w.Header().Set("Allow", allowedMethods)
		w.WriteHeader(http.StatusNoContent)
	default:
		writeNotAllowed(w, "the endpoint takes POST, GET and DELETE")
	}
}

const allowedMethods = "POST, GET, DELETE, OPTIONS"

func writeNotAllowed(w http.ResponseWriter, why string) {
	w.Header().Set("Allow", allowedMethods)
	writeError(w, http.StatusMethodNotAllowed, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
}

// servePost serves one message of either era, or a batch.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request, body []byte) {
	if mcp.IsBatch(body) {
		h.serveBatch(w, r, body)
		return
	}
	m, err := mcp.ParseMessage(body)
	if m.Request != nil {
		m.Request.Principal, m.Request.Header = principalOf(r), r.Header
	}
	switch {
	case err != nil:
		writeMessage(w, http.StatusBadRequest, mcp.AppendErrorResponse(nil, m.ID, err))
	case m.Request != nil && isModern(r.Header, &m):
		h.serveModern(w, r, m.Request)
	default:
		h.serveLegacy(w, r, m)
	}
}

// isModern reports whether a message belongs to the modern era: its metadata says so, or
// its header does, even if it names a session as well. A message that opens a session
// never does.
func isModern(header http.Header, m *mcp.Message) bool {
	if m.Request.IsModern() {
		return true
	}
	return slices.Contains(mcp.ModernVersions(), header.Get(headerVersion)) && !m.IsInitialize()
}

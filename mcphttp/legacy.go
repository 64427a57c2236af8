// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"net/http"
	"slices"

	"github.com/go-psi/psi/mcp"
)

// serveLegacy serves one message of the legacy era.
func (h *Handler) serveLegacy(w http.ResponseWriter, r *http.Request, m mcp.Message) {
	if m.IsInitialize() && r.Header.Get(headerSession) == "" {
		h.initialize(w, r, m)
		return
	}
	s := h.sessionOf(w, r)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	if m.Request == nil || m.Request.IsNotification() {
		h.sessions.pass(r.Context(), s, &m)
		s.legacy.Serve(legacyContext(r), nil, m, refused{})
		accepted(w)
		return
	}
	h.answer(w, r, &legacyCall{session: s, request: m.Request})
}

// legacyContext outlives the connection.
func legacyContext(r *http.Request) *requestContext {
	c := new(requestContext)
	c.request = r
	return c
}

// initialize opens a session, and keeps it if the handshake succeeds.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, m mcp.Message) {
	s, err := h.sessions.open(r)
	if err != nil {
		writeUnavailable(w, m.ID, err)
		return
	}
	defer h.sessions.release(s, r)
	w.Header().Set(headerSession, s.id)
	h.answer(w, r, &legacyCall{session: s, request: m.Request})
	if !s.legacy.Initialized() {
		s.legacy.Close()
	}
}

var errTooManySessions = mcp.Errorf(mcp.CodeInternalError, "there are too many sessions; try again later")

// writeUnavailable refuses a request that may be served later.
func writeUnavailable(w http.ResponseWriter, id mcp.ID, why error) {
	w.Header().Set("Retry-After", "60")
	writeResponse(w, http.StatusServiceUnavailable, mcp.AppendErrorResponse(nil, id, why))
}

// sessionOf finds the session that a request names, in use until it is released.
// It answers by itself if there is none.
func (h *Handler) sessionOf(w http.ResponseWriter, r *http.Request) *session {
	id := r.Header.Get(headerSession)
	if id == "" {
		writeProblem(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest,
			"the request belongs to no session and names no version for itself: send initialize first and repeat its %s, or name the version in params._meta", headerSession))
		return nil
	}
	if v := r.Header.Get(headerVersion); v != "" && !slices.Contains(mcp.LegacyVersions(), v) {
		writeProblem(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s is %.80q, which no session can speak; expected one of %v", headerVersion, v, mcp.LegacyVersions()))
		return nil
	}
	s, err := h.sessions.acquire(r, id)
	switch {
	case err != nil:
		writeUnavailable(w, mcp.ID{}, err)
	case s == nil:
		writeProblem(w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the session is not known, or not any more: start again with initialize"))
	}
	return s
}

// serveBatch serves an array of messages, which only the revision 2025-03-26 has.
func (h *Handler) serveBatch(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Header.Get(headerSession) == "" {
		writeProblem(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array"))
		return
	}
	s := h.sessionOf(w, r)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	if !s.legacy.Batches() {
		writeProblem(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array"))
		return
	}
	h.answer(w, r, &legacyCall{session: s, batch: body})
}

// serveDelete ends a session.
func (h *Handler) serveDelete(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSession) == "" {
		notAllowed(w, "there is nothing to delete: the request names no session")
		return
	}
	s := h.sessionOf(w, r)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	h.sessions.forget(r.Context(), s)
	w.WriteHeader(http.StatusNoContent)
}

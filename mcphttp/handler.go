// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"net/http"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
)

var core = mcp.Internal(seam.Key{})

// A Handler serves an [mcp.Handler] over streamable HTTP, to clients of revision 2026-07-28
// and, with sessions, of revisions 2025-03-26 to 2025-11-25. Use [NewHandler] to create one.
type Handler struct {
	endpoint *endpoint
	legacy   *legacyHandler
}

// NewHandler returns a Handler that serves h. The options may be nil. It panics if h is nil,
// the options contain an invalid host or origin, or Sessions.Shared is incomplete.
func NewHandler(h mcp.Handler, opts *Options) *Handler {
	mustBeHandler("NewHandler", h)
	o := opts.withDefaults(h)
	o.Sessions.check()
	e := newEndpoint(h, &o)
	return &Handler{endpoint: e, legacy: newLegacyHandler(e)}
}

// mustBeMade panics unless the Handler was created by NewHandler.
func (h *Handler) mustBeMade() {
	made.Check(h != nil && h.endpoint != nil, "mcphttp: a Handler", "NewHandler")
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mustBeMade()
	e := h.endpoint
	w = e.limitTime(w, r)
	if e.Closing.Err() != nil && !h.legacy.mayServeLate(r) {
		writeError(w, http.StatusServiceUnavailable, errShutdown)
		return
	}
	body, ok := e.receive(w, r)
	if !ok {
		return
	}
	if !e.Requests.Enter() {
		h.legacy.serveLate(w, r, body)
		return
	}
	defer e.Requests.Leave()
	switch r.Method {
	case http.MethodPost:
		h.servePost(w, r, body)
	case http.MethodGet:
		h.legacy.serveGet(w, r)
	case http.MethodDelete:
		h.legacy.serveDelete(w, r)
	case http.MethodOptions:
		w.Header().Set("Allow", methods)
		w.WriteHeader(http.StatusNoContent)
	default:
		writeNotAllowed(w, methods, "the endpoint takes POST, GET and DELETE")
	}
}

// servePost serves one message of either era, or a batch.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request, body []byte) {
	c := h.endpoint.Server.Accept(body, originOf(r))
	switch {
	case c.Err() != nil:
		writeRefusal(w, http.StatusBadRequest, c)
	case c.IsModern():
		serveModern(h.endpoint, w, r, c)
	default:
		h.legacy.servePost(w, r, body, c)
	}
}

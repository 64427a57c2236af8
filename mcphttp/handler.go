// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"net/http"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
	"github.com/go-psi/psi/mcphttp/internal/header"
	"github.com/go-psi/psi/mcphttp/internal/legacyhttp"
)

var core = mcp.Internal(seam.Key{})

// A Handler serves an [mcp.Handler] over streamable HTTP, to clients of revision 2026-07-28
// and, with sessions, of revisions 2025-03-26 to 2025-11-25. Use [NewHandler] to create one.
type Handler struct {
	endpoint *endpoint.Endpoint
	legacy   *legacyhttp.Handler
}

// NewHandler returns a Handler that serves h. The options may be nil. It panics if h is nil,
// the options contain an invalid host or origin, or Sessions.Shared is incomplete.
func NewHandler(h mcp.Handler, opts *Options) *Handler {
	mustBeHandler("NewHandler", h)
	o := opts.withDefaults()
	o.Sessions.check()
	e := o.endpoint(h)
	return &Handler{endpoint: e, legacy: legacyhttp.New(e, o.legacy())}
}

// mustBeMade panics unless the Handler was created by NewHandler.
func (h *Handler) mustBeMade() {
	made.Check(h != nil && h.endpoint != nil, "mcphttp: a Handler", "NewHandler")
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mustBeMade()
	e := h.endpoint
	w = e.LimitTime(w, r)
	if e.Closing.Err() != nil && !h.legacy.MayServeLate(r) {
		endpoint.WriteError(w, http.StatusServiceUnavailable, endpoint.ErrShutdown)
		return
	}
	body, ok := e.Receive(w, r)
	if !ok {
		return
	}
	if !e.Requests.Enter() {
		h.legacy.ServeLate(w, r, body)
		return
	}
	defer e.Requests.Leave()
	switch r.Method {
	case http.MethodPost:
		h.servePost(w, r, body)
	case http.MethodGet:
		h.legacy.ServeGet(w, r)
	case http.MethodDelete:
		h.legacy.ServeDelete(w, r)
	case http.MethodOptions:
		w.Header().Set("Allow", legacyhttp.Methods)
		w.WriteHeader(http.StatusNoContent)
	default:
		endpoint.WriteNotAllowed(w, legacyhttp.Methods, "the endpoint takes POST, GET and DELETE")
	}
}

// servePost serves one message of either era, or a batch.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request, body []byte) {
	if transport.IsBatch(body) {
		h.legacy.ServeBatch(w, r, body)
		return
	}
	modern, legacy := parsePost(w, r, body)
	switch {
	case modern != nil:
		serveModern(h.endpoint, w, r, modern)
	case legacy != nil:
		h.legacy.ServePost(w, r, body, legacy)
	}
}

// parsePost parses a message and returns it as a modern or a legacy one. If the message
// cannot be read, parsePost writes the response and returns neither. It is a separate
// function to keep the stacks of goroutines blocked in servePost small.
func parsePost(w http.ResponseWriter, r *http.Request, body []byte) (modern *mcp.Request, legacy *legacyhttp.Call) {
	m, err := transport.ParseMessage(body)
	if err == nil && m.IsResponse() {
		return nil, &legacyhttp.Call{Message: m}
	}
	var req *mcp.Request
	if err == nil {
		req, err = endpoint.OriginOf(r).NewRequest(&m)
	}
	switch {
	case err != nil:
		endpoint.WriteMessage(w, http.StatusBadRequest, core.AppendError(nil, m.ID, err))
		return nil, nil
	case serving.IsModern(req, r.Header.Get(header.Version), r.Header.Get(header.Session) != ""):
		return req, nil
	}
	return nil, &legacyhttp.Call{Message: m, Request: req}
}

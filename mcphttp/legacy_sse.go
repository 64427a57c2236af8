// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"iter"
	"net/http"
	"slices"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/internal/legacyhttp"
)

// An SSEHandler serves HTTP+SSE, the transport of 2024-11-05: the client opens an event
// stream with GET, on which the server sends everything, and posts its messages to a URL
// that the first event names. The specification has deprecated it; it is for old clients.
// It must be made by [NewSSEHandler].
//
// One SSEHandler serves both methods on one path. A session ends with its stream, and the
// stream with the authentication of its caller, if that time is known.
type SSEHandler struct{ legacy *legacyhttp.SSEHandler }

// NewSSEHandler returns an SSEHandler that serves h. The options may be nil. Those about
// sessions that outlive a connection have no effect here. It panics as [NewHandler] does.
func NewSSEHandler(h mcp.Handler, opts *Options) *SSEHandler {
	mustBeHandler("NewSSEHandler", h)
	o := opts.withDefaults()
	return &SSEHandler{legacyhttp.NewSSEHandler(o.endpoint(h), o.legacy())}
}

// mustBeMade panics if NewSSEHandler did not make the handler.
func (h *SSEHandler) mustBeMade() {
	made.Check(h != nil && h.legacy != nil, "mcphttp: an SSEHandler", "NewSSEHandler")
}

// ServeHTTP implements [http.Handler].
func (h *SSEHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mustBeMade()
	h.legacy.ServeHTTP(w, r)
}

// Sessions yields the sessions that are open at the moment of the call, in no order.
func (h *SSEHandler) Sessions() iter.Seq[*mcp.Session] {
	h.mustBeMade()
	return slices.Values(h.legacy.Sessions())
}

// Shutdown ends all sessions and waits for their requests to end. If ctx is done before
// that, it returns ctx's error.
func (h *SSEHandler) Shutdown(ctx context.Context) error {
	h.mustBeMade()
	return h.legacy.Shutdown(ctx)
}

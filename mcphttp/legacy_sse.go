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

// An SSEHandler serves HTTP+SSE, the transport of revision 2024-11-05: the client opens an
// event stream with GET, on which the server sends all its messages, and posts messages to
// the URL in the first event. The specification has deprecated this transport; it is for
// old clients. Use [NewSSEHandler] to create an SSEHandler.
//
// One SSEHandler serves both methods on one path. A session ends with its stream. The
// stream ends when the authentication of its caller expires, if that time is known.
type SSEHandler struct{ legacy *legacyhttp.SSEHandler }

// NewSSEHandler returns an SSEHandler that serves h. The options may be nil. Options for
// sessions that outlive a connection have no effect. NewSSEHandler panics in the same cases
// as [NewHandler].
func NewSSEHandler(h mcp.Handler, opts *Options) *SSEHandler {
	mustBeHandler("NewSSEHandler", h)
	o := opts.withDefaults()
	return &SSEHandler{legacyhttp.NewSSEHandler(o.endpoint(h), o.legacy())}
}

// mustBeMade panics unless the SSEHandler was created by NewSSEHandler.
func (h *SSEHandler) mustBeMade() {
	made.Check(h != nil && h.legacy != nil, "mcphttp: an SSEHandler", "NewSSEHandler")
}

// ServeHTTP implements [http.Handler].
func (h *SSEHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mustBeMade()
	h.legacy.ServeHTTP(w, r)
}

// Sessions yields the sessions open at the time of the call, in no particular order.
func (h *SSEHandler) Sessions() iter.Seq[*mcp.Session] {
	h.mustBeMade()
	return slices.Values(h.legacy.Sessions())
}

// Shutdown ends all sessions and waits for the requests in flight. If ctx is done first,
// Shutdown returns ctx's error.
func (h *SSEHandler) Shutdown(ctx context.Context) error {
	h.mustBeMade()
	return h.legacy.Shutdown(ctx)
}

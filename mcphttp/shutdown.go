// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"

	"github.com/go-psi/psi/mcp"
)

// Shutdown ends the handler in good order: it takes no new requests, ends
// subscriptions and the streams of sessions, and waits for the requests that are
// being served; a request whose body has not arrived is not yet one of them. When ctx is done it cancels those and returns ctx's error. It is
// to be called before, or at the same time as, http.Server.Shutdown, which would
// wait for streams for ever. It may be called more than once.
func (h *Handler) Shutdown(ctx context.Context) error {
	idle := h.requests.refuse()
	h.close(mcp.ErrClosed)
	h.listening.end(mcp.ErrClosed)
	h.sessions.endStreams()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = ctx.Err()
	}
	h.kill(mcp.ErrClosed)
	h.inflight.end(mcp.ErrClosed)
	h.sessions.closeAll()
	return err
}

// mayHelp reports whether a request that comes after Shutdown may be one that
// serveLate takes.
func (h *Handler) mayHelp(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(headerSession) != "" && h.hard.Err() == nil
}

// serveLate takes, while the requests that are being served may end, what helps them
// to: answers to their questions, and cancellations. Anything else is refused.
func (h *Handler) serveLate(w http.ResponseWriter, r *http.Request, body []byte) {
	if m, err := mcp.ParseMessage(body); err == nil && h.mayHelp(r) && (m.Request == nil || m.Request.Method == mcp.NotificationCancelled) {
		if s, _ := h.sessions.here(r, r.Header.Get(headerSession)); s != nil {
			defer h.sessions.release(s, r)
			s.legacy.Serve(legacyContext(r), nil, m, refused{})
			accepted(w)
			return
		}
	}
	writeProblem(w, http.StatusServiceUnavailable, errShutdown)
}

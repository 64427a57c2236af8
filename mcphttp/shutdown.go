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
// being served. When ctx is done it cancels those and returns ctx's error. It is
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

// serveLate takes, while the requests that are being served may end, what helps them
// to: answers to their questions, and cancellations. It reports false for anything
// else, which is refused.
func (h *Handler) serveLate(w http.ResponseWriter, r *http.Request) bool {
	id := r.Header.Get(headerSession)
	if r.Method != http.MethodPost || id == "" || !isJSON(r.Header.Get("Content-Type")) || h.guard.check(r) != "" || h.hard.Err() != nil {
		return false
	}
	s := h.sessions.here(id, PrincipalOf(r))
	if s == nil {
		return false
	}
	defer h.sessions.release(s)
	body, err := readBody(w, r, h.opts.MaxBody)
	if err != nil {
		return false
	}
	m, err := mcp.ParseMessage(body)
	if err != nil || m.Request != nil && m.Request.Method != mcp.NotificationCancelled {
		return false
	}
	s.legacy.Serve(legacyContext(r), nil, m, refused{})
	w.WriteHeader(http.StatusAccepted)
	return true
}

// here finds a session that lives in this process: release must follow.
func (ss *sessions) here(id string, p *mcp.Principal) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, _ := ss.enterLocked(id, p)
	return s
}

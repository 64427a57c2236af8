// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-psi/psi/mcp"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

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
	defer h.sessions.release(s)
	if m.Request == nil || m.Request.IsNotification() {
		s.legacy.Serve(legacyContext(r), nil, m, refused{})
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.answer(w, r, s, func(ctx context.Context, out mcp.Sender) []byte {
		return s.legacy.Serve(ctx, nil, m, out)
	})
	if m.ChangesSession() {
		h.sessions.save(r.Context(), s)
	}
}

// legacyContext outlives the connection: in the legacy era, a client that
// disconnects has not cancelled.
func legacyContext(r *http.Request) *requestContext {
	return &requestContext{Context: context.WithoutCancel(r.Context()), request: r}
}

// initialize opens a session, and keeps it if the handshake succeeds.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, m mcp.Message) {
	s := h.sessions.open(PrincipalOf(r))
	if s == nil {
		w.Header().Set("Retry-After", "60")
		writeResponse(w, http.StatusServiceUnavailable,
			mcp.AppendErrorResponse(nil, m.ID, mcp.Errorf(mcp.CodeInternalError, "there are too many sessions; try again later")))
		return
	}
	defer h.sessions.release(s)
	ok := false
	h.answer(w, r, s, func(ctx context.Context, out mcp.Sender) []byte {
		w.Header().Set(headerSession, s.id)
		response := s.legacy.Serve(ctx, nil, m, out)
		if ok = s.legacy.Initialized(); !ok {
			w.Header().Del(headerSession)
		}
		return response
	})
	if !ok {
		s.legacy.Close()
		return
	}
	h.sessions.save(r.Context(), s)
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
	s := h.sessions.acquire(r.Context(), id, PrincipalOf(r))
	if s == nil {
		writeProblem(w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the session is not known, or not any more: start again with initialize"))
	}
	return s
}

// answer writes what serve returns: as JSON if it said nothing before, otherwise
// as the end of its stream.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, s *session, serve func(context.Context, mcp.Sender) []byte) {
	accept := acceptable(r.Header)
	var reply reply
	if !h.prepare(&reply, w, accept) {
		return
	}
	about := legacyContext(r)
	if !reply.accept.stream {
		message := serve(about, refused{})
		h.finishJSON(w, about, message)
		return
	}
	st := s.newStream(&h.opts, &reply.out)
	ctx := context.WithValue(about, streamKey{}, st)
	beat := every(h.opts.Heartbeat, func() { st.heartbeat(ctx) })
	message := serve(ctx, st)
	beat.stop()
	if (reply.accept.json || about.forbidden()) && st.abandon() {
		h.finishJSON(w, about, message)
		return
	}
	st.finish(ctx, message)
}

// abandon ends a stream on which nothing was said, and reports whether it did.
func (st *stream) abandon() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.begun {
		st.done = true
	}
	return st.done
}

// finishJSON answers with a message, or, if there is none because the request was
// cancelled, without.
func (h *Handler) finishJSON(w http.ResponseWriter, about *requestContext, message []byte) {
	if len(message) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	status := http.StatusOK
	if refuse(about, w, about.outcome()) == http.StatusForbidden {
		status = http.StatusForbidden // clients of this era lose the message with any other status
	}
	writeResponse(w, status, message)
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
	defer h.sessions.release(s)
	if !s.legacy.Batches() {
		writeProblem(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array"))
		return
	}
	h.answer(w, r, s, func(ctx context.Context, out mcp.Sender) []byte {
		several := context.WithValue(ctx, refusalKey{}, nil) // what is refused to one is not refused to all
		batch := s.legacy.AdmitBatch(several, body)
		return batch.Serve(nil, out)
	})
	h.sessions.save(r.Context(), s)
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
	defer h.sessions.release(s)
	h.sessions.forget(r.Context(), s)
	w.WriteHeader(http.StatusNoContent)
}

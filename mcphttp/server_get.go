// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// serveGet opens the standalone stream of a session, or resumes any of its streams.
func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSession) == "" {
		writeNotAllowed(w, "there is no stream without a session; requests are sent with POST")
		return
	}
	if !requireStream(w, r) {
		return
	}
	s := h.sessionOf(w, r)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	out := newEventWriter(w, r, h.opts.WriteTimeout)
	defer out.close()
	last := r.Header.Get(headerLastEventID)
	if last == "" {
		h.listen(r, s, out, nil)
		return
	}
	number, position, ok := parseEventID(last)
	switch {
	case !ok:
		writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s is not an event of this session", headerLastEventID))
	case number == standaloneStream:
		h.listen(r, s, out, &position)
	default:
		h.resume(r, s, out, number, position)
	}
}

// resume continues the stream of a request after a position.
func (h *Handler) resume(r *http.Request, s *session, out *eventWriter, number int64, position uint64) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	st := s.streamOf(number)
	if st == nil {
		h.follow(ctx, cancel, s, out, number, position)
		return
	}
	if err := st.attach(ctx, out, position, cancel); err != nil {
		h.finishReplay(out, err)
		return
	}
	defer st.detach(out)
	st.beat() // sends the head
	defer startHeartbeat(h.opts.Heartbeat, st.beat).stop()
	defer context.AfterFunc(h.killed, cancel)()
	<-ctx.Done()
}

// followInterval is how often follow reads the events that another replica has kept.
const followInterval = time.Second

// follow continues a stream that this process does not write: it is done, or another
// replica writes it. It sends the events in the store until the stream ends or none of
// its events is kept any more.
func (h *Handler) follow(ctx context.Context, cancel context.CancelFunc, s *session, out *eventWriter, number int64, position uint64) {
	position, done, err := s.events.replay(ctx, s.id, number, position, out)
	h.finishReplay(out, err)
	if err != nil || done || position == 0 || !s.events.shared { // 0: there never was such a stream
		return
	}
	defer context.AfterFunc(h.closing, cancel)()
	defer context.AfterFunc(s.legacy.Context(), cancel)()
	beat := func() { _ = out.send(commentEvent()) } // a client that has gone needs none
	beat()                                          // sends the head
	defer startHeartbeat(h.opts.Heartbeat, beat).stop()
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for err == nil && !done {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		position, done, err = s.events.replay(ctx, s.id, number, position, out)
	}
}

// finishReplay starts the response after a replay, or writes an error if the events are
// not available.
func (h *Handler) finishReplay(out *eventWriter, err error) {
	out.mu.Lock()
	defer out.mu.Unlock()
	switch {
	case out.started:
	case err == nil:
		out.startLocked()
	case errors.Is(err, store.ErrTrimmed):
		writeError(out.w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s names an event that this session does not have, or not any more", headerLastEventID))
	default:
		h.opts.Logger.Warn("mcphttp: events were not replayed", "error", err)
		writeError(out.w, http.StatusInternalServerError, mcp.Errorf(mcp.CodeInternalError, "the events could not be read"))
	}
}

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

// serveGet opens the session's own stream, or goes on with any of its streams.
func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSession) == "" {
		notAllowed(w, "there is no stream without a session; requests are sent with POST")
		return
	}
	if accept := acceptable(r.Header); !accept.stream {
		writeProblem(w, http.StatusNotAcceptable, mcp.Errorf(mcp.CodeInvalidRequest, "the client must accept %s", typeStream))
		return
	}
	if !canFlush(w) {
		writeProblem(w, http.StatusInternalServerError, cannotStream(w))
		return
	}
	s := h.sessionOf(w, r)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	last := r.Header.Get(headerLastEventID)
	if last == "" {
		h.serveOwn(r, s, w, nil)
		return
	}
	number, position, ok := parseEventID(last)
	switch {
	case !ok:
		writeProblem(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s is not an event of this session", headerLastEventID))
	case number == ownStream:
		h.serveOwn(r, s, w, &position)
	default:
		h.resume(r, s, w, number, position)
	}
}

// resume goes on with the stream of a request.
func (h *Handler) resume(r *http.Request, s *session, w http.ResponseWriter, number int64, position uint64) {
	out := new(output)
	out.of(w, r, h.opts.WriteTimeout)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	st := s.streamOf(number)
	if st == nil {
		h.follow(ctx, cancel, s, out, number, position)
		return
	}
	if err := st.attach(ctx, out, position, cancel); err != nil {
		h.endReplay(out, err)
		return
	}
	defer st.detach(out)
	st.heartbeat() // sends the head
	var b beat
	h.pulse.start(&b, st)
	defer b.stop()
	defer context.AfterFunc(h.hard, cancel)()
	<-ctx.Done()
}

// followEvery is how often a stream is looked at that another replica writes.
const followEvery = time.Second

// follow goes on with a stream that is not written here, from what is kept of it: it is
// done, or another replica writes it, until its end, or until nothing is kept of it any
// more.
func (h *Handler) follow(ctx context.Context, cancel context.CancelFunc, s *session, out *output, number int64, position uint64) {
	position, done, err := s.events.replay(ctx, s.id, number, position, out)
	h.endReplay(out, err)
	if err != nil || done || position == 0 || !s.events.shared { // 0: there never was such a stream
		return
	}
	defer context.AfterFunc(h.ctx, cancel)()
	defer context.AfterFunc(s.legacy.Context(), cancel)()
	f := &following{out: out}
	f.heartbeat() // sends the head
	var b beat
	h.pulse.start(&b, f)
	defer b.stop()
	defer f.end()
	ticker := time.NewTicker(followEvery)
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

// following gives a stream that is not written here its heartbeats.
type following struct{ out *output }

func (f *following) heartbeat() {
	_ = f.out.locked(func(o *output) error {
		if o.done {
			return nil
		}
		return o.comment() // a client that is gone needs none
	})
}

// end is the end of the response, to which nothing may be written any more.
func (f *following) end() {
	_ = f.out.locked(func(o *output) error { o.done = true; return nil })
}

// endReplay answers a client that asked for events that are not, or not any
// more, there.
func (h *Handler) endReplay(out *output, err error) {
	out.mu.Lock()
	defer out.mu.Unlock()
	switch {
	case out.streaming:
	case err == nil:
		out.open()
	case errors.Is(err, store.ErrTrimmed):
		writeProblem(out.w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s names an event that this session does not have, or not any more", headerLastEventID))
	default:
		h.opts.Logger.Warn("mcphttp: events were not replayed", "error", err)
		writeProblem(out.w, http.StatusInternalServerError, mcp.Errorf(mcp.CodeInternalError, "the events could not be read"))
	}
}

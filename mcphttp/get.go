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

// ownStream is the id of the stream of a session that belongs to no request.
const ownStream = "0"

// lingering is for how long a session's own stream goes on without a client, so
// that one that comes back has missed nothing.
const lingering = time.Minute

// getting is a GET that has the session's own stream.
type getting struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

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
	defer h.sessions.release(s)
	out := &output{w: w, timeout: h.opts.WriteTimeout}
	last := r.Header.Get(headerLastEventID)
	if last == "" {
		h.serveOwn(r, s, out, nil)
		return
	}
	id, position, ok := parseEventID(last)
	switch {
	case !ok:
		writeProblem(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s is not an event of this session", headerLastEventID))
	case id == ownStream:
		h.serveOwn(r, s, out, &position)
	default:
		h.resume(r, s, out, id, position)
	}
}

// resume goes on with the stream of a request.
func (h *Handler) resume(r *http.Request, s *session, out *output, id string, position uint64) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	st := s.streamOf(id)
	if st == nil {
		err := s.events.replay(ctx, s.id, id, position, out)
		h.endReplay(out, err)
		return
	}
	if err := st.attach(ctx, out, position, cancel); err != nil {
		h.endReplay(out, err)
		return
	}
	defer st.detach(out)
	st.heartbeat(ctx) // sends the head
	defer every(h.opts.Heartbeat, func() { st.heartbeat(ctx) }).stop()
	defer context.AfterFunc(h.hard, cancel)()
	<-ctx.Done()
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

// serveOwn serves the session's own stream until another GET takes it over, or the
// client, the session or the server ends. The head of the response is not written
// before it can tell of every change, and the GET before this one goes on until
// then.
func (h *Handler) serveOwn(r *http.Request, s *session, out *output, position *uint64) {
	ctx, cancel := context.WithCancelCause(legacyContext(r))
	defer cancel(nil)
	g := &getting{cancel, make(chan struct{})}
	before := s.takeOver(g)
	defer s.getDone(g)
	defer context.AfterFunc(h.ctx, func() { cancel(mcp.ErrClosed) })()
	st := s.own(&h.opts)
	defer st.detach(out)
	connected, disconnect := whileAuthenticated(r)
	defer disconnect()
	defer context.AfterFunc(connected, func() {
		st.detach(out)
		h.linger(r, s, st, g)
		cancel(context.Canceled)
	})()
	defer every(h.opts.Heartbeat, func() { st.heartbeat(ctx) }).stop()
	_ = s.legacy.Listen(ctx, st, func() { // why it ended does not matter here
		if err := st.attachOwn(ctx, out, position, disconnect); err != nil {
			h.endReplay(out, err)
			cancel(err)
		}
		before.end()
	})
	before.end()
}

// linger keeps what is said on the session's own stream for a while after the
// client of g has gone, unless another client has taken it over.
func (h *Handler) linger(r *http.Request, s *session, st *stream, g *getting) {
	if !h.requests.enter() {
		return
	}
	ctx, cancel := context.WithCancelCause(legacyContext(r))
	after := &getting{cancel, make(chan struct{})}
	if !s.handOver(g, after) {
		cancel(nil)
		h.requests.leave()
		return
	}
	h.sessions.retain(s)
	listening := make(chan struct{})
	go func() {
		defer h.requests.leave()
		defer h.sessions.release(s)
		defer s.getDone(after)
		defer cancel(nil)
		defer context.AfterFunc(h.ctx, func() { cancel(mcp.ErrClosed) })()
		defer time.AfterFunc(lingering, func() { cancel(nil) }).Stop()
		_ = s.legacy.Listen(ctx, st, func() { close(listening) }) // why it ended does not matter here
	}()
	select {
	case <-listening:
	case <-after.done:
	}
}

// attachOwn writes the head of the stream at once: there are proxies that hold
// back a response until it has a body.
func (st *stream) attachOwn(ctx context.Context, out *output, position *uint64, broken func()) error {
	if position == nil {
		st.open(ctx, out, broken)
	} else if err := st.attach(ctx, out, *position, broken); err != nil {
		return err
	}
	st.heartbeat(ctx)
	return nil
}

// own is the session's own stream.
func (s *session) own(opts *Options) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[ownStream]; st != nil {
		return st
	}
	return &stream{session: s, id: ownStream, opts: opts, prime: s.legacy.Resumes()}
}

// takeOver makes g the GET that has the session's own stream, nil none, and
// returns the one before, which goes on until it is ended.
func (s *session) takeOver(g *getting) (before *getting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.getting = s.getting, g
	return before
}

// handOver makes after the GET that has the session's own stream, if g has it.
func (s *session) handOver(g, after *getting) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.getting != g {
		return false
	}
	s.getting = after
	return true
}

// end ends a GET and waits for it; nil is none.
func (g *getting) end() {
	if g != nil {
		g.cancel(mcp.ErrClosed)
		<-g.done
	}
}

func (s *session) getDone(g *getting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.getting == g {
		s.getting = nil
	}
	close(g.done)
}

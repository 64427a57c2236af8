// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// ownStream is the number of the stream of a session that belongs to no request.
const ownStream = 0

// lingering is for how long a session's own stream goes on without a client, so
// that one that comes back has missed nothing.
const lingering = time.Minute

// getting is a GET that has the session's own stream, or what lingers of one. There
// may be thousands: it is one allocation, and what waits for it has small frames.
type getting struct {
	handler  *Handler
	session  *session
	stream   *stream
	position *uint64  // after which the client goes on; nil if it begins
	before   *getting // the GET that goes on until this one tells of every change

	out    output
	about  requestContext
	ctx    context.Context // of the GET
	cancel context.CancelCauseFunc
	beat   beat
	left   sync.Once
	done   chan struct{}
}

// serveOwn serves the session's own stream until another GET takes it over, or the
// client, the session or the server ends. The head of the response is not written
// before it can tell of every change, and the GET before this one goes on until
// then.
func (h *Handler) serveOwn(r *http.Request, s *session, w http.ResponseWriter, position *uint64) {
	g := h.newGetting(r, s)
	g.out.of(w, r, h.opts.WriteTimeout)
	g.position = position
	g.stream = s.own(&h.opts)
	g.before = s.takeOver(g)
	defer g.end()
	if h.ctx.Err() != nil {
		g.cancel(mcp.ErrClosed) // Shutdown may not have seen it
	}
	defer g.watch(r)()
	_ = s.legacy.Listen(g.ctx, g.stream, g.ready) // why it ended does not matter here
}

func (h *Handler) newGetting(r *http.Request, s *session) *getting {
	g := &getting{handler: h, session: s, done: make(chan struct{})}
	g.about.detach(r)
	g.ctx, g.cancel = context.WithCancelCause(&g.about)
	return g
}

// watch begins what may end the GET while it waits, and the heartbeat. It returns
// what stops that.
func (g *getting) watch(r *http.Request) (stop func()) {
	connected := context.AfterFunc(r.Context(), g.leave)
	expiry := atExpiry(r, g.leave)
	g.handler.pulse.start(&g.beat, g.stream)
	return func() {
		g.beat.stop()
		connected()
		if expiry != nil {
			expiry.Stop()
		}
		g.stream.detach(&g.out)
		g.out.end()
	}
}

// ready makes the response of the GET that of the stream. A client that comes back
// for a stream that nobody has kept may have missed anything.
func (g *getting) ready() {
	err := g.attach()
	switch {
	case err != nil:
		g.handler.endReplay(&g.out, err)
		g.cancel(err)
	case g.position != nil && g.before == nil:
		g.session.legacy.Missed(g.ctx)
	}
	g.replace()
}

// attach writes the head of the stream at once: there are proxies that hold back a
// response until it has a body.
func (g *getting) attach() error {
	if g.position == nil {
		g.stream.open(g.ctx, &g.out, g.leave)
	} else if err := g.stream.attach(g.ctx, &g.out, *g.position, g.leave); err != nil {
		return err
	}
	g.stream.heartbeat()
	return nil
}

// leave is called when the client has gone, or may not listen any more.
func (g *getting) leave() {
	g.left.Do(func() {
		g.stream.detach(&g.out)
		g.linger()
		g.cancel(context.Canceled)
	})
}

// linger keeps what is said on the session's own stream for a while after the
// client has gone, unless another client has taken it over.
func (g *getting) linger() {
	h, s := g.handler, g.session
	if !h.requests.enter() {
		return
	}
	after := h.newGetting(g.about.request, s)
	after.stream = g.stream
	if !s.handOver(g, after) {
		after.cancel(nil)
		h.requests.leave()
		return
	}
	h.sessions.retain(s)
	listening := make(chan struct{})
	go func() {
		defer h.requests.leave()
		defer h.sessions.release(s)
		defer after.end()
		defer time.AfterFunc(lingering, func() { after.cancel(nil) }).Stop()
		_ = s.legacy.Listen(after.ctx, after.stream, func() { close(listening) }) // why it ended does not matter here
	}()
	select {
	case <-listening:
	case <-after.done:
	}
}

// own is the session's own stream.
func (s *session) own(opts *Options) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[ownStream]; st != nil {
		return st
	}
	return &stream{session: s, number: ownStream, opts: opts}
}

// endGetting ends the GET that has the session's own stream, if there is one.
func (s *session) endGetting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.getting != nil {
		s.getting.cancel(mcp.ErrClosed)
	}
}

// takeOver makes g the GET that has the session's own stream, and returns the one
// before, nil if there is none, which goes on until it is ended.
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

// finish ends a GET and waits for it; nil is none.
func (g *getting) finish() {
	if g != nil {
		g.cancel(mcp.ErrClosed)
		<-g.done
	}
}

// replace ends the GET before this one.
func (g *getting) replace() {
	g.before.finish()
	g.before = nil
}

// end is the end of a GET.
func (g *getting) end() {
	g.replace()
	g.cancel(nil)
	g.session.mu.Lock()
	defer g.session.mu.Unlock()
	if g.session.getting == g {
		g.session.getting = nil
	}
	close(g.done)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/lazyctx"
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

	out   output
	about httpContext
	ctx   lazyctx.Context // of the GET
	beat  beat
	stay  func() bool // keeps it from leaving
	left  atomic.Bool
	going sync.WaitGroup // until it has ended
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
		g.ctx.Cancel(mcp.ErrClosed) // Shutdown may not have seen it
	}
	g.watch(r)
	defer g.unwatch()
	_ = s.legacy.Listen(&g.ctx, originOf(r), g.stream, g.ready) // why it ended does not matter here
}

func (h *Handler) newGetting(r *http.Request, s *session) *getting {
	g := &getting{handler: h, session: s}
	g.going.Add(1)
	g.about.detach(r)
	g.ctx.From(&g.about)
	return g
}

// watch begins what may end the GET while it waits, and the heartbeat.
func (g *getting) watch(r *http.Request) {
	connected := context.AfterFunc(r.Context(), g.leave)
	g.stay = connected
	if expiry := atExpiry(r, g.leave); expiry != nil {
		g.stay = func() bool {
			expiry.Stop()
			return connected()
		}
	}
	g.handler.pulse.start(&g.beat, g.stream)
}

// unwatch stops that.
func (g *getting) unwatch() {
	g.beat.stop()
	g.stay()
	g.stream.detach(&g.out)
	g.out.end()
}

// ready makes the response of the GET that of the stream. It is called deep in the
// stack of a goroutine that may wait for days, and net/http needs much stack to begin a
// response: on a stack of its own that is given back.
func (g *getting) ready() {
	var (
		beginning sync.WaitGroup
		panicked  any
	)
	beginning.Go(func() {
		defer func() { panicked = recover() }()
		g.begin()
	})
	beginning.Wait()
	if panicked != nil {
		panic(panicked)
	}
}

// begin begins the response. A client that comes back for a stream that nobody has
// kept may have missed anything.
func (g *getting) begin() {
	err := g.attach()
	switch {
	case err != nil:
		g.handler.endReplay(&g.out, err)
		g.ctx.Cancel(err)
	case g.position != nil && g.before == nil:
		g.session.legacy.Missed(&g.ctx)
	}
	g.replace()
}

// attach writes the head of the stream at once: there are proxies that hold back a
// response until it has a body.
func (g *getting) attach() error {
	if g.position == nil {
		g.stream.open(&g.ctx, &g.out, g.leave)
	} else if err := g.stream.attach(&g.ctx, &g.out, *g.position, g.leave); err != nil {
		return err
	}
	g.stream.heartbeat()
	return nil
}

// leave is called when the client has gone, or may not listen any more.
func (g *getting) leave() {
	if g.left.Swap(true) {
		return
	}
	g.stream.detach(&g.out)
	g.linger()
	g.ctx.Cancel(context.Canceled)
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
		after.ctx.Cancel(nil)
		h.requests.leave()
		return
	}
	h.sessions.retain(s)
	listening := make(chan struct{})
	ready := sync.OnceFunc(func() { close(listening) })
	go func() {
		defer h.requests.leave()
		defer h.sessions.release(s)
		defer after.end()
		defer time.AfterFunc(lingering, func() { after.ctx.Cancel(nil) }).Stop()
		defer ready()
		_ = s.legacy.Listen(&after.ctx, originOf(g.about.request), after.stream, ready) // why it ended does not matter here
	}()
	<-listening
}

// own is the session's own stream.
func (s *session) own(opts *Options) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standalone != nil {
		return s.standalone
	}
	return &stream{session: s, number: ownStream, opts: opts}
}

// endGetting ends the GET that has the session's own stream, if there is one.
func (s *session) endGetting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.getting != nil {
		s.getting.ctx.Cancel(mcp.ErrClosed)
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
		g.ctx.Cancel(mcp.ErrClosed)
		g.going.Wait()
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
	g.ctx.Cancel(nil)
	g.session.mu.Lock()
	defer g.session.mu.Unlock()
	if g.session.getting == g {
		g.session.getting = nil
	}
	g.going.Done()
}

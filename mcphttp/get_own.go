// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
)

// lingering is for how long a session's own stream goes on without a client, so
// that one that comes back has missed nothing.
const lingering = time.Minute

// getting is a GET of the session's own stream, or what lingers of one.
type getting struct {
	handler  *Handler
	session  *session
	stream   *stream
	position *uint64 // after which the client goes on; nil if it begins
	lingers  bool    // there is no client
	refused  bool    // the response is an error

	out    output
	about  *http.Request
	ctx    context.Context // of the GET
	cancel context.CancelCauseFunc
	beat   beat
	stay   func() bool // keeps it from leaving
	left   atomic.Bool // the client has gone
}

// serveOwn serves the session's own stream until another GET takes it over, or the
// client, the session or the server ends. The head of the response is not written
// before it can tell of every change, and the GET before this one goes on until
// then.
func (h *Handler) serveOwn(r *http.Request, s *session, w http.ResponseWriter, position *uint64) {
	g := h.newGetting(r, s)
	g.out.of(w, r, h.opts.WriteTimeout)
	g.position = position
	s.claim(g)
	defer s.giveUp(g)
	g.watch(r)
	defer g.unwatch()
	_ = s.legacy.Listen(g.ctx, originOf(r), g.stream, g.ready) // why it ended does not matter here
}

func (h *Handler) newGetting(r *http.Request, s *session) *getting {
	g := &getting{handler: h, session: s}
	g.about = r
	g.ctx, g.cancel = context.WithCancelCause(&httpContext{r})
	return g
}

// watch begins what may end the GET while it waits.
func (g *getting) watch(r *http.Request) {
	connected := context.AfterFunc(r.Context(), g.leave)
	g.stay = connected
	if expiry := atExpiry(r, g.leave); expiry != nil {
		g.stay = func() bool {
			expiry.Stop()
			return connected()
		}
	}
}

// unwatch stops that. A GET that never had the stream ends as one that had it.
func (g *getting) unwatch() {
	g.beat.stop()
	g.stay()
	g.stream.detach(&g.out)
	if !g.refused {
		_ = g.out.locked(func(o *output) error { o.open(); return nil })
	}
}

// ready takes the stream over from the GET before, which ends. A client that comes
// back for a stream that no GET has kept meanwhile may have missed anything.
func (g *getting) ready() {
	before, err := g.stream.takeOver(g)
	switch {
	case errors.Is(err, errSuperseded):
		g.cancel(mcp.ErrClosed)
		return
	case err != nil:
		g.refused = true
		g.handler.endReplay(&g.out, err)
		g.cancel(err)
		return
	case !g.lingers:
		g.stream.heartbeat() // the head, at once: there are proxies that hold it back until there is a body
		g.handler.pulse.start(&g.beat, g.stream)
	}
	if before != nil {
		before.cancel(mcp.ErrClosed)
	} else if g.position != nil {
		g.session.legacy.Missed(g.ctx)
	}
}

// errSuperseded is for a GET that may not have the stream any more.
var errSuperseded = errors.New("mcphttp: the stream belongs to another GET")

// takeOver makes the response of g that of the stream, unless g is superseded, and
// returns the GET that had it before, nil if none had it. Whose the stream is changes
// with its lock: a GET cannot take it from one that came later.
func (st *stream) takeOver(g *getting) (before *getting, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if g.ctx.Err() != nil {
		return nil, errSuperseded
	}
	if g.position != nil {
		if err := st.replay(g.ctx, &g.out, *g.position); err != nil {
			return nil, err
		}
	}
	before, ok := g.session.promote(g)
	if !ok {
		return nil, errSuperseded
	}
	if !g.lingers {
		st.dismiss()
		st.out, st.about, st.broken = &g.out, g.ctx, g.leave
		if g.position == nil && st.begun {
			st.primeAgain(g.ctx)
		}
		st.begin(g.ctx)
	}
	return before, nil
}

// leave is called when the client has gone, or may not listen any more. What is said
// on the stream is kept for a while, for the client to come back.
func (g *getting) leave() {
	if g.left.Swap(true) {
		return
	}
	g.stream.detach(&g.out)
	after := g.handler.newGetting(g.about, g.session)
	after.lingers = true
	if !g.session.leaveTo(g, after) {
		g.cancel(context.Canceled)
		return
	}
	go after.linger(g)
}

// linger goes on for g, which ends when it has begun.
func (g *getting) linger(before *getting) {
	defer before.cancel(context.Canceled)
	h, s := g.handler, g.session
	defer h.sessions.release(s, nil)
	defer h.requests.leave()
	defer s.giveUp(g)
	defer time.AfterFunc(lingering, func() { g.cancel(nil) }).Stop()
	_ = s.legacy.Listen(g.ctx, originOf(g.about), g.stream, g.ready) // why it ended does not matter here
}

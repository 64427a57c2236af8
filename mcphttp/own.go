// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import "github.com/go-psi/psi/mcp"

// ownStream is the number of the stream of a session that belongs to no request.
const ownStream = 0

// own is the session's own stream and whose it is. One GET tells of changes, with or
// without a client, until the one that came last can: that one is promoted then. It is
// guarded by the lock of the session.
type own struct {
	stream  *stream  // nil before there was a GET
	telling *getting // nil if none tells of changes
	next    *getting // nil if none waits to
}

// claim makes g the GET that comes next. One that was to come next ends; the one that
// tells of changes goes on.
func (s *session) claim(g *getting) {
	s.mu.Lock()
	superseded := s.own.next
	s.claimLocked(g)
	s.mu.Unlock()
	if superseded != nil {
		superseded.cancel(mcp.ErrClosed)
	}
}

func (s *session) claimLocked(g *getting) {
	if s.own.stream == nil {
		s.own.stream = &stream{session: s, number: ownStream, opts: &g.handler.opts}
	}
	g.stream, s.own.next = s.own.stream, g
	if g.handler.ctx.Err() != nil {
		g.cancel(mcp.ErrClosed) // Shutdown, which ends all streams, may not have seen it
	}
}

// promote makes g, if it is the one that comes next, the GET that tells of changes, and
// returns the one before, nil if there is none.
func (s *session) promote(g *getting) (before *getting, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own.next != g {
		return nil, false
	}
	before = s.own.telling
	s.own.telling, s.own.next = g, nil
	return before, true
}

// leaveTo notes that the client of g has gone. It makes after the GET that comes next,
// and reports that it did, if g tells of changes and no other is to come: after lingers,
// and must be served.
func (s *session) leaveTo(g, after *getting) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own.telling != g || s.own.next != nil || !g.handler.requests.enter() {
		s.giveUpLocked(g)
		return false
	}
	g.handler.sessions.retain(s)
	s.claimLocked(after)
	return true
}

// giveUp takes out a GET that ends.
func (s *session) giveUp(g *getting) {
	g.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveUpLocked(g)
}

func (s *session) giveUpLocked(g *getting) {
	if s.own.telling == g {
		s.own.telling = nil
	}
	if s.own.next == g {
		s.own.next = nil
	}
}

// endOwn ends the GETs of the session's own stream.
func (s *session) endOwn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range []*getting{s.own.telling, s.own.next} {
		if g != nil {
			g.cancel(mcp.ErrClosed)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// accept accepts a message or batch, which must then be served. Its request is in flight
// before the next message is read. accept writes nothing. It returns nil if there is nothing to
// serve.
func (s *streamServer) accept(data []byte) *server.Call {
	if !s.enter() {
		return s.acceptLate(data)
	}
	c := s.server.Accept(data, s.origin())
	s.start(c)
	return c
}

// start makes a call ready to be served.
func (s *streamServer) start(c *server.Call) {
	if err := c.Err(); err != nil {
		s.server.Logger.DebugContext(s.ctx, "mcp: malformed message", "id", c.ID().String(), "error", err)
	}
	switch {
	case c.IsListen():
		c.Enter(s.listening, s.inFlight)
	case c.IsModern():
		c.Enter(s.ctx, s.inFlight)
	default:
		s.session.Enter(s.ctx, c)
	}
}

var errDraining = mcp.Errorf(mcp.CodeInternalError, "the server is shutting down")

// acceptLate accepts a message that arrives while the server drains. A cancellation takes
// effect; a request is refused.
func (s *streamServer) acceptLate(data []byte) *server.Call {
	c := s.server.Accept(data, s.origin())
	switch {
	case c.IsCancellation():
		c.Enter(s.ctx, s.inFlight)
	case c.IsRequest() && s.enterLate():
		c.Refuse(errDraining)
		return c
	}
	return nil
}

// serve serves a call, which may be nil, and writes the response. It calls resign if that
// will take long.
func (s *streamServer) serve(c *server.Call, resign func()) {
	if c == nil {
		return
	}
	defer s.leave()
	isListen := c.IsListen()
	if isListen {
		resign()
	}
	c.Serve(s)
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = c.Append(buf.B)
	s.write(buf.B)
	switch {
	case isListen && len(buf.B) > 0 && c.Err() == nil:
		s.announceEnd(c.ID())
	case c.CompletesHandshake():
		s.session.listenOnce(resign)
	}
}

// announceEnd announces a second time that a subscription has ended, for clients that
// follow the page on cancellation rather than the one on subscriptions. It comes after the
// result, because all clients ignore a late cancellation, but the official TypeScript
// client reports an unexpected response.
func (s *streamServer) announceEnd(id mcp.ID) {
	params := strictjson.MustMarshal(&mcp.CancelledParams{RequestID: id})
	s.write(transport.AppendNotification(nil, mcp.NotificationCancelled, params))
}

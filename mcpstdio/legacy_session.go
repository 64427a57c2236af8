// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
)

// legacySession is the session of a stream. A client that speaks an older revision opens it.
type legacySession struct {
	*legacyserver.Session
	server   *streamServer
	listened atomic.Bool // Listen has been called
}

func newLegacySession(s *streamServer) *legacySession {
	server := legacyserver.NewServer(s.handler, &legacyserver.Options{
		MaxInFlight: s.opts.MaxInFlight, MaxRounds: s.opts.MaxRounds,
		AskTimeout: s.opts.AskTimeout, KeepAlive: s.opts.KeepAlive, Logger: s.opts.Logger,
	})
	return &legacySession{server: s, Session: server.NewSession(legacyserver.Details{Principal: s.opts.Principal}, nil)}
}

// acceptBatch accepts a batch, which only one of the older revisions supports.
func (l *legacySession) acceptBatch(data []byte) serving.Call {
	if !l.Batches() {
		return serving.Refusal(mcp.ID{}, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array"))
	}
	return l.AcceptBatch(l.server.ctx, data, l.server.origin())
}

// owns reports whether a request or notification belongs to an older revision.
func (l *legacySession) owns(req *mcp.Request) bool {
	return !serving.IsModern(req, "", l.Initialized())
}

// openMoment is how long a leader serves the message that ends the handshake before it
// resigns. Later messages wait until the session receives changes, so that a client misses
// no change.
const openMoment = time.Second

func (l *legacySession) acceptRequest(a *arrival, req *mcp.Request) {
	a.call = l.AcceptRequest(l.server.ctx, req)
	if req.Method == revision.Initialized {
		a.moment, a.after = openMoment, l.listenOnce
	}
}

// listenOnce sends changes until the stream ends, if the handshake is complete and it has
// not done so before. It calls ready once no further change can be missed.
func (l *legacySession) listenOnce(ready func()) {
	if l.Initialized() && l.listened.CompareAndSwap(false, true) {
		l.Listen(l.server.listening, l.server.origin(), l.server, ready)
	}
}

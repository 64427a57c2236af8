// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/server"
)

// legacySession is the session of a stream. A client that speaks an older revision opens it.
type legacySession struct {
	*server.Session
	stream   *streamServer
	listened atomic.Bool // Listen has been called
}

func newLegacySession(s *streamServer) *legacySession {
	details := server.Details{Principal: s.opts.Principal, InFlight: s.inFlight}
	return &legacySession{stream: s, Session: s.server.NewSession(details, nil)}
}

// openMoment is how long a leader serves the message that ends the handshake before it
// resigns. Later messages wait until the session receives changes, so that a client misses
// no change.
const openMoment = time.Second

// momentFor returns how long a leader serves a call before it resigns.
func momentFor(c *server.Call) time.Duration {
	if c != nil && c.CompletesHandshake() {
		return openMoment
	}
	return moment
}

// listenOnce sends changes until the stream ends, if the handshake is complete and it has
// not done so before. It calls ready once no further change can be missed.
func (l *legacySession) listenOnce(ready func()) {
	if l.Initialized() && l.listened.CompareAndSwap(false, true) {
		l.Listen(l.stream.listening, l.stream.origin(), l.stream, ready)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"time"

	"github.com/go-psi/psi/internal/pause"
)

const (
	// checkTimeout bounds a check of the session.
	checkTimeout = 10 * time.Second
	// maxCheckDelay bounds the delay between checks. It grows with each check, so that a
	// server that loses every session does not keep its client busy. It starts again when
	// there was no check for checkReset.
	maxCheckDelay = 30 * time.Second
	checkReset    = time.Minute
)

// A sessionChecker is the state of the checks of the session. The lock of the session
// guards it.
type sessionChecker struct {
	running   bool
	requested bool // while running
	last      time.Time
	count     int // checks since the last reset
}

// checkSoon checks the session in a goroutine, which runs until every request for a check
// has been followed by one.
func (s *session) checkSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checker.running {
		s.checker.requested = true
		return
	}
	s.checker.running = true
	go func() {
		for pause.For(s.ctx, s.checkDelay()) == nil {
			s.check()
			if !s.isCheckRequested() {
				return
			}
		}
	}()
}

// checkDelay returns the delay before the next check, and counts that check.
func (s *session) checkDelay() (delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.checker
	if time.Since(c.last) > checkReset {
		c.count = 0
	}
	if c.count > 0 {
		delay = min(500*time.Millisecond<<min(c.count, 8), maxCheckDelay)
	}
	c.count++
	c.last = time.Now().Add(delay)
	return delay
}

// isCheckRequested reports whether another check was requested, and otherwise ends the
// checks.
func (s *session) isCheckRequested() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checker.running, s.checker.requested = s.checker.requested, false
	return s.checker.running
}

// check pings the server, which opens a new session if the last one is lost. Without it, a
// client that only listens would not notice.
func (s *session) check() {
	ctx, cancel := context.WithTimeout(s.ctx, checkTimeout)
	defer cancel()
	if err := s.ping(ctx); err != nil {
		s.conn.opts.Logger.DebugContext(ctx, "mcp: the session could not be checked", "error", err)
	}
}

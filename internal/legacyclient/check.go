// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"time"

	"github.com/go-psi/psi/internal/async"
)

const (
	// checkTimeout limits the duration of a session check.
	checkTimeout = 10 * time.Second
	// maxCheckDelay limits the delay between checks. The delay grows with each check, so
	// that a server that loses every session does not keep its client busy. It is reset
	// after checkReset without a check.
	maxCheckDelay = 30 * time.Second
	checkReset    = time.Minute
)

// A sessionChecker holds the state of the session checks. It is guarded by session.mu.
type sessionChecker struct {
	running   bool
	requested bool // another check was requested while running
	last      time.Time
	count     int // checks since the last reset
}

// checkSoon starts a goroutine that checks the session, unless one is already running. The
// goroutine exits once every request for a check has been followed by a check.
func (s *session) checkSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checker.running {
		s.checker.requested = true
		return
	}
	s.checker.running = true
	go func() {
		for async.Sleep(s.ctx, s.checkDelay()) == nil {
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
		delay = async.Backoff(time.Second, maxCheckDelay, c.count-1)
	}
	c.count++
	c.last = time.Now().Add(delay)
	return delay
}

// isCheckRequested reports whether another check was requested. If not, it marks the
// checker as not running.
func (s *session) isCheckRequested() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checker.running, s.checker.requested = s.checker.requested, false
	return s.checker.running
}

// check pings the server, which opens a new session if the last one was lost. Without it, a
// client that only listens would not notice the loss.
func (s *session) check() {
	ctx, cancel := context.WithTimeout(s.ctx, checkTimeout)
	defer cancel()
	if err := s.ping(ctx); err != nil {
		s.conn.opts.Logger.DebugContext(ctx, "mcp: the session could not be checked", "error", err)
	}
}

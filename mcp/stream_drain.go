// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "time"

// enter counts a message in, unless the server has stopped to take any.
func (s *streamServer) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		return false
	}
	s.active++
	return true
}

// most is how many messages are served at once: requests of either era, as many as are
// in flight, and as much that is refused or a notification.
func (s *streamServer) most() int { return 3*s.opts.MaxInFlight + 1 }

// handOver starts the next leader, unless too much is being served: then the peer sends
// more than it reads, and has to wait.
func (s *streamServer) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unled = s.active >= s.most(); !s.unled {
		go s.lead()
	}
}

func (s *streamServer) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	if s.unled && s.active < s.most() {
		s.unled = false
		go s.lead()
	}
	if s.active == 0 && s.idle != nil {
		close(s.idle)
	}
}

// drain ends what would go on by itself, waits for the rest, within a bound, and
// cancels what is left.
func (s *streamServer) drain() {
	idle := s.stop()
	s.hush(ErrClosed)
	s.legacy.hangUp()
	s.await(idle)
	s.cancel(ErrClosed)
	s.legacy.Close()
}

func (s *streamServer) await(idle <-chan struct{}) {
	if s.opts.DrainTimeout <= 0 {
		return
	}
	timer := time.NewTimer(s.opts.DrainTimeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// serveLate takes what arrives while the server drains: it can still cancel a
// request, but no more.
func (s *streamServer) serveLate(data []byte) {
	m, err := ParseMessage(data)
	if err != nil || m.Request == nil || m.Request.Method != NotificationCancelled {
		return
	}
	s.cancelled(m.Request)
	s.legacy.cancelled(m.Request)
}

// stop lets nothing more begin, and returns what is closed when all has ended.
func (s *streamServer) stop() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = make(chan struct{})
	if s.active == 0 {
		close(s.idle)
	}
	return s.idle
}

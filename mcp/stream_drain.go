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

func (s *streamServer) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	if s.active == 0 && s.idle != nil {
		close(s.idle)
	}
}

// drain ends what would go on by itself and waits for the rest, within a bound.
func (s *streamServer) drain() {
	idle := s.stop()
	s.hush(ErrClosed)
	s.legacy.hangUp()
	if s.opts.DrainTimeout > 0 {
		timer := time.NewTimer(s.opts.DrainTimeout)
		defer timer.Stop()
		select {
		case <-idle:
			return
		case <-timer.C:
		}
	}
	s.cancel(ErrClosed)
	s.legacy.Close()
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

func (s *streamServer) stop() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = make(chan struct{})
	if s.active == 0 {
		close(s.idle)
	}
	return s.idle
}

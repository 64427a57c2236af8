// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"time"

	"github.com/go-psi/psi/mcp"
)

// change changes the list of tools every second, of all replicas.
func (s *server) change(ctx context.Context) {
	for extra := true; ctx.Err() == nil; extra = !extra {
		s.setExtra(extra)
		pause(ctx, time.Second)
	}
	s.setExtra(false)
}

func (s *server) setExtra(extra bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extra = extra
	s.changes = append(s.changes, time.Now())
	s.updateLocked(s.local)
	for _, p := range s.replicas {
		s.updateLocked(p.mux)
	}
}

// updateLocked gives a mux the tool that comes and goes, or takes it away.
func (s *server) updateLocked(mux *mcp.Mux) {
	if s.extra {
		mux.Tool("extra", s.counted(echo))
	} else {
		mux.RemoveTool("extra")
	}
}

// changedBetween reports the last change between two times.
func (s *server) changedBetween(from, to time.Time) (last time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.changes {
		if at.After(from) && at.Before(to) {
			last, ok = at, true
		}
	}
	return last, ok
}

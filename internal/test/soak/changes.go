// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"time"

	"github.com/go-psi/psi/mcp"
)

// change changes the tools of all replicas every second.
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

// updateLocked adds the extra tool to a mux, or removes it.
func (s *server) updateLocked(mux *mcp.Mux) {
	if s.extra {
		mux.Tool("extra", s.counted(echo))
	} else {
		mux.RemoveTool("extra")
	}
}

// changedBetween returns the time of the last change between two times, if any.
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

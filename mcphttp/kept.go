// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"time"
)

// keptLog is a stream that is done, whose events may still be in the store.
type keptLog struct {
	stream int64
	since  time.Time
}

// maxKept is of how many streams a session remembers that there are events of them.
// Those of the others go when their time is over.
const maxKept = 1024

// keepLocked notes a stream that is done, and forgets those whose events are gone.
func (s *session) keepLocked(stream int64) {
	now := time.Now()
	gone := max(0, len(s.kept)+1-maxKept)
	if ttl := s.events.keep.TTL; ttl > 0 {
		for gone < len(s.kept) && now.Sub(s.kept[gone].since) > ttl {
			gone++
		}
	}
	s.kept = append(s.kept[:0], s.kept[gone:]...)
	s.kept = append(s.kept, keptLog{stream, now})
}

// end returns the streams of a session that has ended of which there may be events.
// It says so to those that go on.
func (s *session) end() (streams []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.own.stream != nil {
		streams = append(streams, ownStream)
	}
	for stream := range s.streams {
		streams = append(streams, stream)
	}
	for _, k := range s.kept {
		streams = append(streams, k.stream)
	}
	s.kept = nil
	return streams
}

func (e *events) drop(ctx context.Context, session string, stream int64) error {
	return e.logs.Drop(ctx, logName(session, stream))
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// replay knows which proofs were used.
type replay interface {
	// first reports, in one step, whether a proof is used for the first time, and
	// remembers it until it has expired.
	first(ctx context.Context, key digest, issued, expires time.Time) (bool, error)
}

// sharedReplay is for replicas.
type sharedReplay struct{ values store.Values }

func (s sharedReplay) first(ctx context.Context, key digest, _, expires time.Time) (bool, error) {
	name := "dpop/" + base64.RawURLEncoding.EncodeToString(key[:])
	_, err := s.values.Put(ctx, name, nil, 0, time.Until(expires)+time.Second)
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// memoryReplay has a set for each slice of time in which proofs were issued, so that
// old ones are forgotten at once. If there is no room, the oldest slice is forgotten
// early, and nothing issued in it, or before, is taken any more: what is not known to
// be new is refused.
type memoryReplay struct {
	window, slice time.Duration
	max           int

	mu     sync.Mutex
	slices map[int64]map[[16]byte]struct{}
	count  int
	closed int64 // the newest slice that is refused
}

func newMemoryReplay(window time.Duration, limit int) *memoryReplay {
	return &memoryReplay{window: window, slice: max(window/16, time.Second), max: max(1, limit), slices: map[int64]map[[16]byte]struct{}{}}
}

func (m *memoryReplay) first(_ context.Context, key digest, issued, _ time.Time) (bool, error) {
	short, at := [16]byte(key[:16]), issued.UnixNano()/int64(m.slice)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closeLocked(time.Now().Add(-m.window).UnixNano()/int64(m.slice) - 1)
	set := m.slices[at]
	if _, used := set[short]; used || at <= m.closed {
		return false, nil
	}
	if m.count >= m.max {
		if m.closeLocked(m.oldestLocked()); at <= m.closed {
			return false, nil
		}
	}
	if set == nil {
		set = map[[16]byte]struct{}{}
		m.slices[at] = set
	}
	set[short] = struct{}{}
	m.count++
	return true, nil
}

// closeLocked forgets, and refuses from now on, what was issued in a slice or before.
func (m *memoryReplay) closeLocked(until int64) {
	if until <= m.closed {
		return
	}
	m.closed = until
	for at, set := range m.slices {
		if at <= until {
			m.count -= len(set)
			delete(m.slices, at)
		}
	}
}

func (m *memoryReplay) oldestLocked() int64 {
	oldest := m.closed
	for at := range m.slices {
		if oldest == m.closed || at < oldest {
			oldest = at
		}
	}
	return oldest
}

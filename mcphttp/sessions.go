// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"crypto/rand"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// session is a session of the legacy era and its streams.
type session struct {
	id     string
	legacy *mcp.Legacy
	events *events

	mu      sync.Mutex
	streams map[string]*stream // that are not done
	last    int64              // number of the last stream
	getting *getting           // the GET that has the session's own stream

	// Guarded by the lock of sessions.
	active int       // requests and streams
	since  time.Time // when active became 0
}

// sessions are those that live in this process.
type sessions struct {
	mcp    mcp.Handler
	opts   *Options
	events *events

	mu    sync.Mutex
	byID  map[string]*session
	sweep *time.Timer // nil while there are no sessions
}

func newSessions(h mcp.Handler, opts *Options) *sessions {
	shared := opts.Store
	if shared == nil {
		shared = store.NewMemory(nil)
	}
	return &sessions{mcp: refusing(h), opts: opts, byID: map[string]*session{}, events: &events{logs: shared, keep: opts.Replay}}
}

// open begins a session that is in use: release must follow. It returns nil if
// there are too many.
func (ss *sessions) open(p *mcp.Principal) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if len(ss.byID) >= ss.opts.MaxSessions && !ss.evictLocked() {
		return nil
	}
	id := rand.Text()
	return ss.addLocked(id, ss.opts.legacy(id, p))
}

func (ss *sessions) addLocked(id string, opts *mcp.LegacyOptions) *session {
	s := &session{id: id, events: ss.events, active: 1}
	opts.Closed = func() { ss.remove(s) }
	s.legacy = mcp.NewLegacy(ss.mcp, opts)
	ss.byID[id] = s
	if ss.sweep == nil {
		ss.sweep = time.AfterFunc(ss.opts.SessionIdle/2, ss.expire)
	}
	return s
}

// acquire finds a session for a request of p: release must follow. Somebody
// else's session is as unknown as one that never was.
func (ss *sessions) acquire(ctx context.Context, id string, p *mcp.Principal) *session {
	ss.mu.Lock()
	s := ss.byID[id]
	ss.mu.Unlock()
	if s == nil {
		s = ss.restore(ctx, id, p)
	}
	if s == nil || !s.legacy.Session().Principal().Is(p) {
		return nil
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[id] != s {
		return nil
	}
	s.active++
	return s
}

// retain keeps a session that is in use in use; release must follow.
func (ss *sessions) retain(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.active++
}

func (ss *sessions) release(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.active--; s.active == 0 {
		s.since = time.Now()
	}
}

func (ss *sessions) remove(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[s.id] != s {
		return
	}
	delete(ss.byID, s.id)
	if len(ss.byID) == 0 && ss.sweep != nil {
		ss.sweep.Stop()
		ss.sweep = nil
	}
}

// evictLocked ends the session that is idle for longest.
func (ss *sessions) evictLocked() bool {
	var oldest *session
	for _, s := range ss.byID {
		if s.active == 0 && (oldest == nil || s.since.Before(oldest.since)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	delete(ss.byID, oldest.id)
	oldest.legacy.Close()
	return true
}

// expire ends the sessions that were idle for too long, and comes again.
func (ss *sessions) expire() {
	now := time.Now()
	var expired []*session
	ss.mu.Lock()
	for _, s := range ss.byID {
		if s.active == 0 && now.Sub(s.since) >= ss.opts.SessionIdle {
			expired = append(expired, s)
		}
	}
	if ss.sweep != nil {
		ss.sweep.Reset(ss.opts.SessionIdle / 2)
	}
	ss.mu.Unlock()
	for _, s := range expired {
		s.legacy.Close()
		ss.remove(s)
	}
}

// all is a copy of the sessions of this moment.
func (ss *sessions) all() []*session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	list := make([]*session, 0, len(ss.byID))
	for _, s := range ss.byID {
		list = append(list, s)
	}
	return list
}

func (ss *sessions) closeAll() {
	for _, s := range ss.all() {
		s.legacy.Close()
		ss.remove(s)
	}
}

// endStreams ends the sessions' own streams; requests go on.
func (ss *sessions) endStreams() {
	for _, s := range ss.all() {
		s.takeOver(nil).end()
	}
}

// Sessions yields the sessions of the legacy era that are open in this process at
// this moment, in no order.
func (h *Handler) Sessions() iter.Seq[*mcp.Session] {
	all := h.sessions.all()
	return func(yield func(*mcp.Session) bool) {
		for _, s := range slices.All(all) {
			if !yield(s.legacy.Session()) {
				return
			}
		}
	}
}

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

	mu         sync.Mutex
	streams    map[int64]*stream // of requests, that are not done
	standalone *stream           // the session's own; nil before it has begun
	last       int64             // number of the last stream
	getting    *getting          // the GET that has the session's own stream
	kept       []keptLog         // of streams that are done, oldest first
	over       bool              // the session has ended: no events are kept

	// Guarded by the lock of sessions.
	active int32     // requests and streams
	since  time.Time // when active became 0
	used   bool      // since the store was told that it lives
	moves  bool      // it ends here, and may go on at another replica

	discarded sync.Once
}

// sessions are those that live in this process.
type sessions struct {
	mcp    mcp.Handler
	opts   *Options
	events *events

	mu    sync.Mutex
	byID  map[string]*session
	sweep *time.Timer        // nil while there are no sessions
	quiet context.CancelFunc // ends hearing other replicas; nil while there are no sessions

	name string // of this process among others
}

func newSessions(h mcp.Handler, opts *Options) *sessions {
	shared := opts.Store
	if shared == nil {
		shared = store.NewMemory(nil)
	}
	return &sessions{mcp: &refusing{h}, opts: opts, byID: map[string]*session{}, name: rand.Text(), events: &events{logs: shared, keep: opts.Replay, shared: opts.Store != nil}}
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
	opts.Closed = func() { ss.closed(s) }
	s.legacy = mcp.NewLegacy(ss.mcp, opts)
	ss.byID[id] = s
	if ss.sweep == nil {
		ss.sweep = time.AfterFunc(ss.opts.SessionIdle/2, ss.expire)
		ss.listenLocked()
	}
	return s
}

// acquire finds a session for a request of p: release must follow. It is nil if it is
// not known; somebody else's session is as unknown as one that never was. An error
// means that it may be known, and cannot be served now.
func (ss *sessions) acquire(ctx context.Context, id string, p *mcp.Principal) (*session, error) {
	ss.mu.Lock()
	s, known := ss.enterLocked(id, p)
	ss.mu.Unlock()
	if known {
		return s, nil
	}
	return ss.restore(ctx, id, p)
}

// enterLocked finds a session that lives in this process: nil if it is somebody
// else's.
func (ss *sessions) enterLocked(id string, p *mcp.Principal) (s *session, known bool) {
	s = ss.byID[id]
	if s == nil || !s.legacy.Session().Principal().Is(p) {
		return nil, s != nil
	}
	s.active++
	s.used = true
	return s, true
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
		ss.quietLocked()
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
	ss.dropLocked(oldest)
	oldest.legacy.Close()
	return true
}

// dropLocked takes a session out that ends in this process only, if another can go
// on with it.
func (ss *sessions) dropLocked(s *session) {
	delete(ss.byID, s.id)
	s.moves = ss.opts.Store != nil
}

// expire ends the sessions that were idle for too long, and comes again.
func (ss *sessions) expire() {
	expired, living := ss.sort(time.Now())
	for _, s := range expired {
		s.legacy.Close()
	}
	ss.keepAll(living)
}

// sort takes out the sessions that were idle for too long, and returns them and
// those that were used since the last time.
func (ss *sessions) sort(now time.Time) (expired, living []*session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		switch {
		case s.active == 0 && now.Sub(s.since) >= ss.opts.SessionIdle:
			ss.dropLocked(s)
			expired = append(expired, s)
		case ss.opts.Store != nil && (s.active > 0 || s.used):
			s.used = false
			living = append(living, s)
		}
	}
	switch {
	case ss.sweep == nil:
	case len(ss.byID) == 0:
		ss.sweep = nil
		ss.quietLocked()
	default:
		ss.sweep.Reset(ss.opts.SessionIdle / 2)
	}
	return expired, living
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

// closeAll ends all sessions in this process.
func (ss *sessions) closeAll() {
	for _, s := range ss.all() {
		ss.mu.Lock()
		s.moves = ss.opts.Store != nil
		ss.mu.Unlock()
		s.legacy.Close()
		ss.remove(s)
	}
}

// endStreams ends the sessions' own streams, without waiting for them; requests go on.
func (ss *sessions) endStreams() {
	for _, s := range ss.all() {
		s.endGetting()
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

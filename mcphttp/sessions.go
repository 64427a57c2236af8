// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/digest"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// session is a session of the legacy era and its streams.
type session struct {
	id     string
	legacy *mcp.Legacy
	events *events
	caller *caller

	mu      sync.Mutex
	streams map[int64]*stream // of requests, that are not done
	own     own
	last    int64   // number of the last stream
	over    bool    // the session has ended: no events are kept
	cancels *window // those that were passed on to other replicas; nil if none was

	// Guarded by the lock of sessions.
	active  int32           // requests and streams
	clients []*http.Request // that are being served
	since   time.Time       // when active became 0
	used    bool            // since the store was told that it lives
	moves   bool            // it ends here, and may go on at another replica

	discarded sync.Once
}

// logged names the session in log lines, without giving its id away: who has that may
// have the session.
func (s *session) logged() string { return digest.Session(s.id) }

// sessions are those that live in this process.
type sessions struct {
	mcp    mcp.Handler
	opts   *Options
	events *events

	mu      sync.Mutex
	byID    map[string]*session
	callers callers
	over    bool               // no session is opened or restored any more
	sweep   *time.Timer        // nil while there are no sessions
	quiet   context.CancelFunc // ends hearing other replicas; nil while there are no sessions

	name string // of this process among others
}

func newSessions(h mcp.Handler, opts *Options) *sessions {
	shared := opts.Store
	if shared == nil {
		shared = store.NewMemory(nil)
	}
	name := rand.Text()
	return &sessions{
		mcp: &refusing{h}, opts: opts, byID: map[string]*session{}, callers: callers{}, name: name,
		events: &events{
			logs: shared, keep: opts.Replay, perCaller: opts.ReplayPerCaller,
			shared: opts.Store != nil, replica: name, askTime: opts.askTime(),
		},
	}
}

// open opens a session that is in use: release must follow. It returns an error if
// there are too many.
func (ss *sessions) open(r *http.Request) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if err := ss.makeRoomLocked(callerOf(r)); err != nil {
		return nil, err
	}
	id := rand.Text()
	s := ss.addLocked(id, r, ss.opts.legacy(id, PrincipalOf(r)))
	s.used = false // it is saved when it is initialized
	return s, nil
}

func (ss *sessions) addLocked(id string, r *http.Request, opts *mcp.LegacyOptions) *session {
	s := &session{id: id, events: ss.events, caller: ss.callers.add(callerOf(r))}
	s.enterLocked(r)
	s.legacy = mcp.NewLegacy(ss.mcp, opts)
	context.AfterFunc(s.legacy.Context(), func() { ss.closed(s) })
	ss.byID[id] = s
	if ss.sweep == nil {
		ss.sweep = time.AfterFunc(ss.opts.SessionIdle/2, ss.expire)
		ss.listenLocked()
	}
	return s
}

// acquire finds a session for a request: release must follow. It is nil if it is
// not known; somebody else's session is as unknown as one that never was. An error
// means that it may be known, and cannot be served now.
func (ss *sessions) acquire(r *http.Request, id string) (*session, error) {
	if s, known := ss.here(r, id); known {
		return s, nil
	}
	return ss.restore(r, id)
}

// here finds a session that lives in this process: release must follow. It is nil if
// it is somebody else's.
func (ss *sessions) here(r *http.Request, id string) (s *session, known bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.hereLocked(r, id)
}

func (ss *sessions) hereLocked(r *http.Request, id string) (s *session, known bool) {
	s = ss.byID[id]
	if s == nil || !s.legacy.Session().Principal().Is(PrincipalOf(r)) {
		return nil, s != nil
	}
	s.enterLocked(r)
	return s, true
}

// enterLocked notes that a request is being served.
func (s *session) enterLocked(r *http.Request) {
	s.active++
	s.used = true
	s.clients = append(s.clients, r)
}

// retain keeps a session that is in use in use, without a client; release must follow.
func (ss *sessions) retain(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.active++
}

// release ends the use of a session by a request, which is nil after retain.
func (ss *sessions) release(s *session, r *http.Request) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if i := slices.Index(s.clients, r); i >= 0 {
		s.clients = slices.Delete(s.clients, i, i+1)
	}
	if s.active--; s.active == 0 {
		s.since = time.Now()
		s.clients = nil
	}
}

func (ss *sessions) remove(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[s.id] != s {
		return
	}
	ss.takeOutLocked(s)
	if len(ss.byID) == 0 && ss.sweep != nil {
		ss.sweep.Stop()
		ss.sweep = nil
		ss.quietLocked()
	}
}

// takeOutLocked takes out a session that is known.
func (ss *sessions) takeOutLocked(s *session) {
	delete(ss.byID, s.id)
	ss.callers.remove(s.caller)
}

// dropLocked takes a session out that ends in this process only, if another can go
// on with it.
func (ss *sessions) dropLocked(s *session) {
	ss.takeOutLocked(s)
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

// closeAll ends all sessions in this process. Requests that outlive a shutdown open
// none after it.
func (ss *sessions) closeAll() {
	ss.mu.Lock()
	ss.over = true
	ss.mu.Unlock()
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
		s.endOwn()
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

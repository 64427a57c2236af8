// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
)

// session is a session of the legacy era and its streams.
type session struct {
	legacy *server.Session
	caller *caller
	kept   sessionEvents // guarded by the lock of kept

	isTransient bool // it ends with its only request; see legacy_stateless.go

	mu         sync.Mutex         // see stream for the lock order
	streams    map[string]*stream // of requests in flight, by name
	standalone standalone
	lastStream int64 // the number of the last stream

	// Guarded by sessions.mu.
	active     int32           // requests in flight and detached listeners
	clients    []*http.Request // the requests in flight
	absent     int             // calls in flight without a client
	idleSince  time.Time       // when active became 0
	former     owner           // the replica that had the session before, or zero
	isSaved    bool            // the session is in the store
	isUsed     bool            // it was used since it was last extended in the store
	isMovable  bool            // it ends in this process, but may continue in another one
	isReleased bool            // another replica has taken it over
	hasMoved   bool            // its client may have missed changes since this process took it over

	isDiscarded bool // the store no longer has it
}

func (s *session) id() string { return s.legacy.ID() }

// logID returns the name of the session in logs. It does not reveal the ID, with which
// anyone could use the session.
func (s *session) logID() string { return redact.Session(s.id()) }

// sessions are the sessions that live in this process.
type sessions struct {
	server      *server.Server
	opts        *SessionOptions
	logger      *slog.Logger
	peers       *peers // nil if no other replica can serve the sessions
	kept        kept
	lastWarning atomic.Int64 // about an event that was not kept, in Unix seconds

	mu         sync.Mutex // see stream for the lock order
	byID       map[string]*session
	callers    callers
	closed     bool        // no more sessions are opened or taken over
	sweepTimer *time.Timer // nil while there are no sessions
}

func newSessions(e *endpoint) *sessions {
	opts := &e.Sessions
	return &sessions{
		server: e.Server, opts: opts, logger: e.Logger, peers: newPeers(opts.Shared, e),
		byID: map[string]*session{}, callers: newCallers(opts.Replay), kept: kept{all: shelf{limit: maxAllEvents}},
	}
}

// mayWarn reports whether a warning about events may be logged. It allows one per minute.
func (ss *sessions) mayWarn() bool {
	now, last := time.Now().Unix(), ss.lastWarning.Load()
	return now-last >= 60 && ss.lastWarning.CompareAndSwap(last, now)
}

// open opens a session for a request; the caller must release it. It returns an error if
// there are too many sessions.
func (ss *sessions) open(r *http.Request) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if err := ss.makeRoomLocked(callerOf(r)); err != nil {
		return nil, err
	}
	return ss.addLocked(rand.Text(), r, nil), nil
}

func (ss *sessions) addLocked(id string, r *http.Request, state *server.State) *session {
	s := &session{caller: ss.callers.add(callerOf(r)), kept: sessionEvents{shelf: shelf{limit: maxSessionEvents}}}
	s.legacy = ss.server.NewSession(server.Details{
		ID: id, Principal: PrincipalOf(r), QuestionPrefix: ss.questionPrefix(id),
		Closed: func() { ss.cleanUp(s) }, Reserve: s.caller.subscribed.reserve,
	}, state)
	s.addClientLocked(r)
	ss.byID[id] = s
	if ss.sweepTimer == nil && !ss.closed {
		ss.sweepTimer = time.AfterFunc(ss.opts.Idle/2, ss.sweep)
	}
	return s
}

// findLocal returns a session in this process; the caller must release it. It returns nil
// if the session is not in this process, or belongs to another caller.
func (ss *sessions) findLocal(r *http.Request, id string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.findLocalLocked(r, id)
}

func (ss *sessions) findLocalLocked(r *http.Request, id string) *session {
	s := ss.byID[id]
	if s == nil || !s.legacy.Public().Principal().Is(PrincipalOf(r)) {
		return nil
	}
	s.addClientLocked(r)
	return s
}

// addClientLocked records a request in flight.
func (s *session) addClientLocked(r *http.Request) {
	s.active++
	s.isUsed = true
	s.clients = append(s.clients, r)
}

// retain keeps a session from becoming idle while it has no request. The caller must
// release it with a nil request.
func (ss *sessions) retain(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.active++
}

// release ends the use of a session by a request. After retain, r is nil.
func (ss *sessions) release(s *session, r *http.Request) {
	if s.isTransient {
		s.legacy.Close()
		return
	}
	ss.mu.Lock()
	ss.releaseLocked(s, r)
	ss.mu.Unlock()
	if ss.peers != nil {
		ss.dropIfLetGo(s)
	}
}

func (ss *sessions) releaseLocked(s *session, r *http.Request) {
	if i := slices.Index(s.clients, r); i >= 0 {
		s.clients = slices.Delete(s.clients, i, i+1)
	}
	if s.active--; s.active == 0 {
		s.idleSince = time.Now()
		if cap(s.clients) > 8 {
			s.clients = nil // an idle session should use little memory
		}
	}
}

func (ss *sessions) remove(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID[s.id()] != s {
		return
	}
	ss.removeLocked(s)
	ss.stopIfEmptyLocked()
}

// stopIfEmptyLocked stops the sweep if there are no sessions.
func (ss *sessions) stopIfEmptyLocked() {
	if len(ss.byID) == 0 && ss.sweepTimer != nil {
		ss.sweepTimer.Stop()
		ss.sweepTimer = nil
	}
}

func (ss *sessions) removeLocked(s *session) {
	delete(ss.byID, s.id())
	ss.kept.end(s)
	ss.callers.remove(s.caller)
}

// dropLocked removes a session that ends in this process only. If sessions are shared,
// another process may continue it.
func (ss *sessions) dropLocked(s *session) {
	ss.removeLocked(s)
	s.isMovable = ss.peers != nil
}

// sweep ends the sessions that have been idle for too long. sweepTimer calls it every
// SessionOptions.Idle/2.
func (ss *sessions) sweep() {
	expired, used := ss.dropExpired(time.Now())
	for _, s := range expired {
		s.legacy.Close()
	}
	ss.extendAll(used)
	ss.kept.expire()
}

// dropExpired drops and returns the sessions that have been idle for too long. It also
// returns the sessions whose lifetime in the store must be extended.
func (ss *sessions) dropExpired(now time.Time) (expired, used []*session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		switch {
		case s.active == 0 && now.Sub(s.idleSince) >= ss.opts.Idle:
			ss.dropLocked(s)
			expired = append(expired, s)
		case s.isSaved && (s.active > 0 || s.isUsed):
			s.isUsed = false
			used = append(used, s)
		}
	}
	switch {
	case ss.sweepTimer == nil:
	case len(ss.byID) == 0:
		ss.sweepTimer = nil
	default:
		ss.sweepTimer.Reset(ss.opts.Idle / 2)
	}
	return expired, used
}

// all returns the current sessions.
func (ss *sessions) all() []*session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	all := make([]*session, 0, len(ss.byID))
	for _, s := range ss.byID {
		all = append(all, s)
	}
	return all
}

// closeAll ends all sessions in this process. No sessions are opened after it, even by
// requests that outlive Shutdown.
func (ss *sessions) closeAll() {
	ss.mu.Lock()
	ss.closed = true
	ss.mu.Unlock()
	for _, s := range ss.all() {
		ss.mu.Lock()
		s.isMovable = ss.peers != nil
		ss.mu.Unlock()
		s.legacy.Close()
		ss.remove(s)
	}
	if ss.peers != nil {
		ss.peers.transport.CloseIdleConnections()
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.stopIfEmptyLocked()
}

// leftovers implements [legacyHandler.leftovers].
func (ss *sessions) leftovers() string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if len(ss.byID) == 0 && len(ss.callers.byKey) == 0 && ss.sweepTimer == nil && ss.kept.all.bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%d sessions, %d callers; sweeping: %v; %d bytes of events", len(ss.byID), len(ss.callers.byKey), ss.sweepTimer != nil, ss.kept.all.bytes)
}

// endListeners ends the standalone streams of all sessions without waiting for them.
func (ss *sessions) endListeners() {
	for _, s := range ss.all() {
		s.endListeners()
	}
}

// callerKey identifies the caller of a request, for limits per caller: its principal or,
// without one, its address.
type callerKey struct{ principal, address string }

func callerOf(r *http.Request) callerKey {
	if p := PrincipalOf(r); p != nil {
		return callerKey{principal: p.Key()}
	}
	return callerKey{address: networkOf(r.RemoteAddr)}
}

// networkOf returns the address of a client without its port. For an IPv6 address, it
// returns the /64 network, which usually has one owner.
func networkOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		prefix, _ := addr.Prefix(64) // never fails for an IPv6 address
		return prefix.String()
	}
	return addr.String()
}

// caller is a caller that has sessions.
type caller struct {
	key        callerKey
	sessions   int
	absent     int    // calls in flight without a client, of all sessions
	kept       shelf  // the events of its sessions
	subscribed budget // bytes of the subscriptions of its sessions
}

// callers are the callers that have sessions, guarded by the lock of sessions or SSEHandler.
type callers struct {
	byKey      map[callerKey]*caller
	replay     int    // bytes of events that are kept for one of them
	subscribed budget // bytes of the subscriptions of all sessions
}

// Limits on the subscriptions of sessions, in bytes. A single session may have 256 KiB.
const (
	maxSubscribed          = 64 << 20
	maxSubscribedPerCaller = 4 << 20
)

func newCallers(replay int) callers {
	return callers{byKey: map[callerKey]*caller{}, replay: replay, subscribed: budget{limit: maxSubscribed}}
}

// add counts a session of a caller; remove undoes it.
func (cs *callers) add(key callerKey) *caller {
	c := cs.byKey[key]
	if c == nil {
		c = &caller{key: key, kept: shelf{limit: cs.replay}, subscribed: budget{limit: maxSubscribedPerCaller, parent: &cs.subscribed}}
		cs.byKey[key] = c
	}
	c.sessions++
	return c
}

func (cs *callers) remove(c *caller) {
	if c.sessions--; c.sessions == 0 {
		delete(cs.byKey, c.key)
	}
}

// count returns the number of sessions of a caller.
func (cs *callers) count(key callerKey) int {
	if c := cs.byKey[key]; c != nil {
		return c.sessions
	}
	return 0
}

// A budget is a number of bytes that may be used. It is safe for concurrent use.
type budget struct {
	limit  int64
	used   atomic.Int64
	parent *budget // from which the bytes are reserved too; may be nil
}

// reserve uses n bytes, or returns them if n is negative, and reports whether there were
// enough. If it returns false, it has no effect.
func (b *budget) reserve(n int) bool {
	if used := b.used.Add(int64(n)); n > 0 && used > b.limit || b.parent != nil && !b.parent.reserve(n) {
		b.used.Add(int64(-n))
		return false
	}
	return true
}

var errTooManySessions = mcp.Errorf(mcp.CodeInternalError, "there are too many sessions; try again later")

// makeRoomLocked makes room for a session of a caller, or returns an error. A caller loses
// sessions to another caller only while it has more of them. With only a limit for each
// caller, ten callers could fill the server; if the oldest went first, one caller could end
// all sessions.
func (ss *sessions) makeRoomLocked(key callerKey) error {
	own := ss.callers.count(key)
	hasRoom := true
	switch {
	case ss.closed:
		return errShutdown
	case own >= ss.opts.MaxPerCaller:
		hasRoom = ss.evictLocked(func(s *session) bool { return s.caller.key == key })
	case len(ss.byID) >= ss.opts.Max:
		hasRoom = ss.evictLocked(func(s *session) bool { return s.caller.key == key || s.caller.sessions > own })
	}
	if !hasRoom {
		return errTooManySessions
	}
	return nil
}

// evictLocked ends one unused session for which mayGo returns true. It returns false if
// there is none.
func (ss *sessions) evictLocked(mayGo func(*session) bool) bool {
	var victim *session
	for _, s := range ss.byID {
		if s.isUnusedLocked() && mayGo(s) && (victim == nil || s.isEvictedBeforeLocked(victim)) {
			victim = s
		}
	}
	if victim == nil {
		return false
	}
	ss.dropLocked(victim)
	victim.legacy.Close()
	return true
}

// isUnusedLocked reports whether no client is waiting for the session: it is idle, or the
// clients of all its requests have disconnected. Work that continues for them, such as a
// question or a detached listener, keeps the session alive only while there is room.
func (s *session) isUnusedLocked() bool {
	for _, r := range s.clients {
		if r.Context().Err() == nil {
			return false
		}
	}
	return true
}

// isEvictedBeforeLocked reports whether s is evicted before other. Sessions of the caller with
// the most sessions go first, then idle sessions, then the session that has been idle longest.
func (s *session) isEvictedBeforeLocked(other *session) bool {
	switch {
	case s.caller.sessions != other.caller.sessions:
		return s.caller.sessions > other.caller.sessions
	case (s.active == 0) != (other.active == 0):
		return s.active == 0
	}
	return s.idleSince.Before(other.idleSince)
}

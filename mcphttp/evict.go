// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

// makeRoomLocked makes room for a session of a caller, or returns an error. Callers
// lose sessions to others only as long as they have more of them.
func (ss *sessions) makeRoomLocked(key callerKey) error {
	own := ss.callers.sessions(key)
	room := true
	switch {
	case ss.over:
		return errShutdown
	case own >= ss.opts.MaxSessionsPerCaller:
		room = ss.evictLocked(func(s *session) bool { return s.caller.key == key })
	case len(ss.byID) >= ss.opts.MaxSessions:
		room = ss.evictLocked(func(s *session) bool { return s.caller.key == key || s.caller.sessions > own })
	}
	if !room {
		return errTooManySessions
	}
	return nil
}

// evictLocked ends one of the sessions that may go.
func (ss *sessions) evictLocked(mayGo func(*session) bool) bool {
	var victim *session
	for _, s := range ss.byID {
		if s.unusedLocked() && mayGo(s) && (victim == nil || s.goesBeforeLocked(victim)) {
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

// unusedLocked reports whether no client waits for the session now: it is idle, or the
// clients of all its requests have disconnected. What goes on for those, a question
// that waits for its answer or a stream that lingers, keeps the session alive only as
// long as there is room.
func (s *session) unusedLocked() bool {
	for _, r := range s.clients {
		if r.Context().Err() == nil {
			return false
		}
	}
	return true
}

// goesBeforeLocked reports whether s is evicted rather than other: sessions of the
// caller with the most of them go first, idle ones before those that are left
// alone, and the one that is idle for longest.
func (s *session) goesBeforeLocked(other *session) bool {
	switch {
	case s.caller.sessions != other.caller.sessions:
		return s.caller.sessions > other.caller.sessions
	case (s.active == 0) != (other.active == 0):
		return s.active == 0
	}
	return s.since.Before(other.since)
}

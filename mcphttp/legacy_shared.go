// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// This file keeps the records of shared sessions. A record names the owner of the session,
// and has what another process needs to continue it if the owner is gone.

// sessionRecord is the stored record of a session.
type sessionRecord struct {
	Owner   owner        `json:"owner"`
	Former  owner        `json:"former,omitzero"` // the owner before, which may still serve requests
	State   server.State `json:"state"`
	Issuer  string       `json:"issuer,omitempty"`
	Subject string       `json:"subject,omitempty"`
	Known   bool         `json:"known,omitempty"` // there is a principal
}

// principal returns the caller that the session is bound to.
func (r *sessionRecord) principal() *mcp.Principal {
	if !r.Known {
		return nil
	}
	return &mcp.Principal{Issuer: r.Issuer, Subject: r.Subject}
}

func sessionKey(id string) string { return "psi/session/" + id }

// storedLifetime returns how long a session is stored without being extended. A session in
// use is extended after at most one and a half times SessionOptions.Idle.
func (ss *sessions) storedLifetime() time.Duration { return 2 * ss.opts.Idle }

// storeTimeout bounds operations of the store that a request waits for.
const storeTimeout = 10 * time.Second

// storeContext returns a context for writes to the store that must not be lost when the
// client disconnects.
func storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
}

var errStore = mcp.Errorf(mcp.CodeInternalError, "the session could not be looked up; try again later")

// load returns the record of a session and its version, or nil if there is none. An error
// means that the client should try again.
func (ss *sessions) load(r *http.Request, id string) (*sessionRecord, uint64, error) {
	if store.CheckKey(sessionKey(id)) != nil {
		return nil, 0, nil // no session has such an ID
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	data, version, err := ss.peers.values.Get(ctx, sessionKey(id))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, 0, nil
	case err != nil:
		if r.Context().Err() == nil { // otherwise the client has disconnected
			ss.logger.WarnContext(ctx, "mcphttp: a session was not found, because the store does not answer", "session", redact.Session(id), "error", err)
		}
		return nil, 0, errStore
	}
	rec, err := ss.peers.openRecord(id, data)
	if err != nil {
		ss.logger.WarnContext(ctx, "mcphttp: the record of a session cannot be read", "session", redact.Session(id), "error", err)
		return nil, 0, nil
	}
	return rec, version, nil
}

// isKnown reports whether another replica has the session that a request names.
func (ss *sessions) isKnown(r *http.Request, id string) (bool, error) {
	if ss.peers == nil {
		return false, nil
	}
	rec, _, err := ss.load(r, id)
	return rec != nil && rec.principal().Is(PrincipalOf(r)), err
}

// adopt makes this process the owner of a session, whose owner is gone, and returns the
// session; the caller must release it. It returns store.ErrConflict if the record has
// changed, because another replica was faster.
func (ss *sessions) adopt(r *http.Request, id string, rec *sessionRecord, version uint64) (*session, error) {
	next := *rec
	if next.Owner.Process != ss.peers.self.Process {
		next.Owner, next.Former = ss.peers.self, next.Owner
	}
	data, err := ss.peers.sealRecord(id, &next)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	switch _, err := ss.peers.values.Put(ctx, sessionKey(id), data, version, ss.storedLifetime()); {
	case errors.Is(err, store.ErrConflict):
		return nil, store.ErrConflict
	case err != nil:
		ss.logger.WarnContext(ctx, "mcphttp: a session was not taken over", "session", redact.Session(id), "error", err)
		return nil, errStore
	}
	return ss.addAdopted(r, id, &next)
}

// addAdopted adds a session whose record names this process. If another request has added it
// in the meantime, or it was here before, it is continued.
func (ss *sessions) addAdopted(r *http.Request, id string, rec *sessionRecord) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byID[id]
	switch {
	case s == nil:
		if err := ss.makeRoomLocked(callerOf(r)); err != nil {
			return nil, err
		}
		s = ss.addLocked(id, r, &rec.State)
		s.isSaved, s.hasMoved, s.lastStream = true, true, adoptedStreamBase()
	case s.isReleased:
		s.isReleased, s.hasMoved = false, true
		s.legacy.Continue(&rec.State)
		s.addClientLocked(r)
	default:
		s.addClientLocked(r)
	}
	s.former = rec.Former
	return s, nil
}

// adoptedStreamBase returns the number after which the streams of an adopted session are
// numbered. It is random, because this process may have had the session before.
func adoptedStreamBase() int64 { return 1<<32 + mathrand.Int64N(1<<61) } //nolint:gosec // it must be unique, not secret

// letGo ends the ownership of a session that another replica has taken over. Requests in
// flight go on; the session ends with the last one.
func (ss *sessions) letGo(s *session) {
	ss.mu.Lock()
	s.isReleased, s.isMovable = true, true
	ss.mu.Unlock()
	s.endListeners()
	ss.dropIfLetGo(s)
}

// dropIfLetGo ends a session that this process has let go and that no request uses.
func (ss *sessions) dropIfLetGo(s *session) {
	ss.mu.Lock()
	unused := s.isReleased && s.active == 0 && ss.byID[s.id()] == s
	if unused {
		ss.dropLocked(s)
		ss.stopIfEmptyLocked()
	}
	ss.mu.Unlock()
	if unused {
		s.legacy.Close()
	}
}

// tookOver reports whether the client of a session may have missed changes, because another
// replica had the session before. It does so once.
func (ss *sessions) tookOver(s *session) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	hasMoved := s.hasMoved
	s.hasMoved = false
	return hasMoved
}

func (ss *sessions) formerOf(s *session) owner {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return s.former
}

func (ss *sessions) forgetFormer(id string, former owner) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.byID[id]; s != nil && s.former == former {
		s.former = owner{}
	}
}

var (
	errNotSaved = mcp.Errorf(mcp.CodeInternalError, "the session could not be saved; try again later")
	errNotOwned = errors.New("mcphttp: another replica has taken over the session")
)

// save writes the state of a session to the store, if sessions are shared. An error means
// that the client should try again. A session that another replica has taken over is let
// go, and one that another request has ended stays ended.
func (ss *sessions) save(ctx context.Context, s *session, isNew bool) error {
	if ss.peers == nil {
		return nil
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	err := ss.update(ctx, s, func(rec *sessionRecord) error {
		if rec == nil && !isNew {
			return store.ErrNotFound
		}
		return nil
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.legacy.Close()
		return nil
	case err != nil:
		ss.logger.WarnContext(ctx, "mcphttp: a session was not saved", "session", s.logID(), "error", err)
		return errNotSaved
	}
	ss.mu.Lock()
	s.isSaved, s.isUsed = true, false
	ss.mu.Unlock()
	return nil
}

// update writes the record of a session, whose present one, if any, check accepts. It lets
// the session go if another replica owns it.
func (ss *sessions) update(ctx context.Context, s *session, check func(old *sessionRecord) error) error {
	rec := sessionRecord{Owner: ss.peers.self, Former: ss.formerOf(s)}
	if p := s.legacy.Public().Principal(); p != nil {
		rec.Known, rec.Issuer, rec.Subject = true, p.Issuer, p.Subject
	}
	err := store.Update(ctx, ss.peers.values, sessionKey(s.id()), ss.storedLifetime(), func(data []byte) ([]byte, error) {
		var old *sessionRecord
		if data != nil {
			var err error
			if old, err = ss.peers.openRecord(s.id(), data); err != nil {
				return nil, err
			}
		}
		switch err := check(old); {
		case err != nil:
			return nil, err
		case old != nil && old.Owner.Process != ss.peers.self.Process:
			return nil, errNotOwned
		}
		rec.State = s.legacy.State()
		return ss.peers.sealRecord(s.id(), &rec)
	})
	if errors.Is(err, errNotOwned) {
		ss.letGo(s)
	}
	return err
}

// extend keeps a session in use from expiring in the store. It reports whether this process
// still owns the session, or may own it because the store does not answer. A session that
// another replica has ended ends here, too.
func (ss *sessions) extend(ctx context.Context, s *session) bool {
	err := ss.update(ctx, s, func(old *sessionRecord) error {
		if old == nil {
			return store.ErrNotFound
		}
		return nil
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.legacy.Close()
		return false
	case errors.Is(err, errNotOwned):
		return false
	case err != nil:
		ss.logger.WarnContext(ctx, "mcphttp: a session was not kept alive", "session", s.logID(), "error", err)
	}
	return true
}

func (ss *sessions) extendAll(used []*session) {
	if len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), ss.opts.Idle/2) // it is called again after that time
	defer cancel()
	for _, s := range used {
		ss.extend(ctx, s)
	}
}

var errNotRemoved = mcp.Errorf(mcp.CodeInternalError, "the session could not be removed; try again later")

// end ends a session for all replicas. An error means that it goes on, because another
// replica may still find it, so the client should try again.
func (ss *sessions) end(ctx context.Context, s *session) error {
	if err := ss.discard(ctx, s); err != nil {
		return err
	}
	ss.mu.Lock()
	s.isDiscarded = true
	ss.mu.Unlock()
	s.legacy.Close()
	ss.remove(s)
	return nil
}

// cleanUp is called in its own goroutine when a session has ended. If sessions are shared, it
// does not discard a session whose client has stopped answering pings, because the client
// may have reconnected to another replica.
func (ss *sessions) cleanUp(s *session) {
	ss.remove(s)
	isSilent := errors.Is(context.Cause(s.legacy.Context()), server.ErrSilent)
	ss.mu.Lock()
	isKept := s.isMovable || s.isDiscarded || isSilent && ss.peers != nil
	ss.mu.Unlock()
	if !isKept {
		_ = ss.discard(context.Background(), s) // discard logs errors
	}
}

// discard removes a session that has ended from the store. It logs errors, and returns an
// error if the session may still be stored. It may be called again.
func (ss *sessions) discard(ctx context.Context, s *session) error {
	if ss.peers == nil {
		return nil
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	_, err := ss.peers.values.Take(ctx, sessionKey(s.id()))
	if err == nil || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	ss.logger.WarnContext(ctx, "mcphttp: a session was not removed", "session", s.logID(), "error", err)
	return errNotRemoved
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"context"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/digest"
	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
)

// This file shares the state of sessions with other processes (replicas) through Options.Store.

// sessionRecord is the stored record of a session.
type sessionRecord struct {
	State   legacyserver.State `json:"state"`
	Issuer  string             `json:"issuer,omitempty"`
	Subject string             `json:"subject,omitempty"`
	Known   bool               `json:"known,omitempty"` // there is a principal
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
// use is extended after at most one and a half times SessionIdle.
func (ss *sessions) storedLifetime() time.Duration { return 2 * ss.opts.SessionIdle }

// storeTimeout bounds operations of the store that a request waits for.
const storeTimeout = 10 * time.Second

// storeContext returns a context for writes to the store that must not be lost when the
// client disconnects.
func storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
}

var errNotSaved = mcp.Errorf(mcp.CodeInternalError, "the session could not be saved; try again later")

// save writes the changes that a call made to its session to a shared store, or the whole
// state if the call is a handshake. An error means that the client should try again. A
// session that another request has ended in the meantime stays ended.
func (ss *sessions) save(ctx context.Context, c *Call) error {
	if ss.opts.Store == nil {
		return nil
	}
	s := c.session
	ctx, cancel := storeContext(ctx)
	defer cancel()
	err := store.Update(ctx, ss.opts.Store, sessionKey(s.id()), ss.storedLifetime(), func(old []byte) ([]byte, error) {
		if old == nil && !c.isHandshake() {
			return nil, store.ErrNotFound
		}
		return changeRecord(old, c)
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.legacy.Close()
	case err != nil:
		ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not saved", "session", s.logID(), "error", err)
		return errNotSaved
	case c.isHandshake():
		ss.mu.Lock()
		s.isSaved, s.isUsed = true, false
		ss.mu.Unlock()
	}
	return nil
}

// changeRecord applies the changes of a call to the record of its session and returns the
// result. old is nil for a new session.
func changeRecord(old []byte, c *Call) ([]byte, error) {
	var rec sessionRecord
	if p := c.session.legacy.Public().Principal(); p != nil {
		rec.Known, rec.Issuer, rec.Subject = true, p.Issuer, p.Subject
	}
	if old != nil {
		if err := json.Unmarshal(old, &rec); err != nil {
			return nil, err
		}
	}
	c.call.ApplyTo(&rec.State)
	return json.Marshal(rec)
}

var errStore = mcp.Errorf(mcp.CodeInternalError, "the session could not be looked up; try again later")

// restore returns a session opened by another replica, or nil if there is none. An error
// means that the client should try again.
func (ss *sessions) restore(r *http.Request, id string) (*session, error) {
	if ss.opts.Store == nil || store.CheckKey(sessionKey(id)) != nil {
		return nil, nil // no session has such an ID
	}
	ctx := r.Context()
	ss.start() // before the session exists, because the store may be slow
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	data, _, err := ss.opts.Store.Get(bounded, sessionKey(id))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		if ctx.Err() == nil { // otherwise the client has disconnected
			ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not restored", "session", digest.Session(id), "error", err)
		}
		return nil, errStore
	}
	var rec sessionRecord
	if json.Unmarshal(data, &rec) != nil {
		return nil, nil // a record that cannot be read is not a session
	}
	if !rec.principal().Is(endpoint.PrincipalOf(r)) {
		return nil, nil
	}
	return ss.adopt(r, id, &rec)
}

// adopt adds a session opened by another replica, unless another request has added it in
// the meantime. The caller must release the session.
func (ss *sessions) adopt(r *http.Request, id string, rec *sessionRecord) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s, known := ss.findLocalLocked(r, id); known {
		return s, nil
	}
	if err := ss.makeRoomLocked(callerOf(r)); err != nil {
		return nil, err
	}
	s := ss.addLocked(id, r, &rec.State)
	s.lastStream, s.isSaved = adoptedStreamBase(), true
	return s, nil
}

// adoptedStreamBase returns the number after which the streams of an adopted session are
// numbered. It is random, so that the numbers differ from those of other replicas.
func adoptedStreamBase() int64 { return 1<<32 + mathrand.Int64N(1<<61) } //nolint:gosec // it must be unique, not secret

// extendInStore keeps sessions in use from expiring in the store. It ends sessions that are
// no longer stored, because another replica has ended them.
func (ss *sessions) extendInStore(used []*session) {
	if len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), ss.opts.SessionIdle/2) // it is called again after that time
	defer cancel()
	for _, s := range used {
		err := store.Update(ctx, ss.opts.Store, sessionKey(s.id()), ss.storedLifetime(), func(old []byte) ([]byte, error) {
			if old == nil {
				return nil, store.ErrNotFound
			}
			return old, nil
		})
		switch {
		case errors.Is(err, store.ErrNotFound):
			s.legacy.Close()
		case err != nil:
			ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not kept alive", "session", s.logID(), "error", err)
		}
	}
}

var errNotRemoved = mcp.Errorf(mcp.CodeInternalError, "the session could not be removed; try again later")

// end ends a session in all replicas. An error means that another replica may still find the
// session, so the client should try again.
func (ss *sessions) end(ctx context.Context, s *session) error {
	ss.mu.Lock()
	s.isDeleted = true
	ss.mu.Unlock()
	s.legacy.Close()
	ss.remove(s)
	return ss.discard(ctx, s)
}

// cleanUp is called in its own goroutine when a session has ended. If there is a Store, it
// does not discard a session whose client has stopped answering pings, because the client
// may have reconnected to another replica.
func (ss *sessions) cleanUp(s *session) {
	ss.remove(s)
	isSilent := errors.Is(context.Cause(s.legacy.Context()), legacyserver.ErrSilent)
	ss.mu.Lock()
	isKept := s.isMovable || s.isDeleted || isSilent && ss.opts.Store != nil
	ss.mu.Unlock()
	if !isKept {
		_ = ss.discard(context.Background(), s) // discard logs errors
	}
}

// discard removes a session that has ended in all replicas, and its events, from the store.
// It logs errors, and returns an error if the session may still be stored. It may be called again.
func (ss *sessions) discard(ctx context.Context, s *session) error {
	err := ss.removeFromStore(ctx, s)
	if err != nil {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not removed", "session", s.logID(), "error", err)
		err = errNotRemoved
	}
	if err := ss.events.drop(ctx, s.stopKeeping()...); err != nil {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: events were not removed", "session", s.logID(), "error", err)
	}
	return err
}

func (ss *sessions) removeFromStore(ctx context.Context, s *session) error {
	if ss.opts.Store == nil {
		return nil
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	_, err := ss.opts.Store.Take(ctx, sessionKey(s.id()))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

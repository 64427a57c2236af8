// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/digest"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// record is what other replicas need of a session to go on with it.
type record struct {
	State   mcp.LegacyState `json:"state"`
	Issuer  string          `json:"issuer,omitempty"`
	Subject string          `json:"subject,omitempty"`
	Known   bool            `json:"known,omitempty"` // there is a principal
}

// principal is the caller that the session is bound to.
func (r *record) principal() *mcp.Principal {
	if !r.Known {
		return nil
	}
	return &mcp.Principal{Issuer: r.Issuer, Subject: r.Subject}
}

func sessionKey(id string) string { return "psi/session/" + id }

// lifetime is how long a session lives in the store after it was said that it does:
// until that is said again, which is at most one and a half times SessionIdle later,
// and a little more.
func (ss *sessions) lifetime() time.Duration { return 2 * ss.opts.SessionIdle }

// storeTime is how long it may take to write to the store what must not be lost.
const storeTime = 10 * time.Second

// storing is a context for that, also when the client has gone.
func storing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storeTime)
}

// save shares the state of a session, if there is somebody to share it with. It
// is called after what may have changed it, and keeps it from expiring.
func (ss *sessions) save(ctx context.Context, s *session) {
	if ss.opts.Store == nil {
		return
	}
	rec := record{State: s.legacy.State()}
	if p := s.legacy.Session().Principal(); p != nil {
		rec.Known, rec.Issuer, rec.Subject = true, p.Issuer, p.Subject
	}
	ctx, cancel := storing(ctx)
	defer cancel()
	data, err := json.Marshal(rec)
	if err == nil {
		err = store.Update(ctx, ss.opts.Store, sessionKey(s.id), ss.lifetime(), func([]byte) ([]byte, error) { return data, nil })
	}
	if err != nil {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not saved", "session", s.logged(), "error", err)
	}
}

// restore goes on with a session that another replica has opened, if there is one.
// An error means that it could not, and that the client should try again.
func (ss *sessions) restore(r *http.Request, id string) (*session, error) {
	if ss.opts.Store == nil || store.CheckKey(sessionKey(id)) != nil {
		return nil, nil //nolint:nilerr // no session has such an id
	}
	ctx := r.Context()
	data, _, err := ss.opts.Store.Get(ctx, sessionKey(id))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		if ctx.Err() == nil { // otherwise the client has gone
			ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not restored", "session", digest.Session(id), "error", err)
		}
		return nil, errStore
	}
	var rec record
	if json.Unmarshal(data, &rec) != nil {
		return nil, nil //nolint:nilerr // what nobody can go on with is not known
	}
	if !rec.principal().Is(PrincipalOf(r)) {
		return nil, nil
	}
	return ss.adopt(r, id, &rec)
}

var errStore = mcp.Errorf(mcp.CodeInternalError, "the session could not be looked up; try again later")

// adopt adds a session that another replica has opened, unless it is here by now.
// It is in use.
func (ss *sessions) adopt(r *http.Request, id string, rec *record) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s, known := ss.hereLocked(r, id); known {
		return s, nil
	}
	if err := ss.makeRoomLocked(callerOf(r)); err != nil {
		return nil, err
	}
	opts := ss.opts.legacy(id, PrincipalOf(r))
	opts.State = &rec.State
	s := ss.addLocked(id, r, opts)
	s.last = firstStream()
	return s, nil
}

// firstStream is behind which number the streams of a session begin that was opened
// by another replica, which counts on from its own.
func firstStream() int64 { return 1<<32 + mathrand.Int64N(1<<61) } //nolint:gosec // it is to be another one, not a secret

// keepAll keeps sessions that are used from expiring in the store, and ends those
// that are not there any more: another replica has ended them.
func (ss *sessions) keepAll(living []*session) {
	if len(living) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), ss.opts.SessionIdle/2) // then it is done again
	defer cancel()
	for _, s := range living {
		err := store.Update(ctx, ss.opts.Store, sessionKey(s.id), ss.lifetime(), func(old []byte) ([]byte, error) {
			if old == nil {
				return nil, store.ErrNotFound
			}
			return old, nil
		})
		switch {
		case errors.Is(err, store.ErrNotFound):
			s.legacy.Close()
		case err != nil:
			ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not kept alive", "session", s.logged(), "error", err)
		}
	}
}

// forget ends a session for all replicas.
func (ss *sessions) forget(ctx context.Context, s *session) {
	s.legacy.Close()
	ss.remove(s)
	ss.discard(ctx, s)
}

// closed clears up after a session that has ended, whoever ended it.
func (ss *sessions) closed(s *session) {
	ss.remove(s)
	ss.mu.Lock()
	moves := s.moves
	ss.mu.Unlock()
	if moves {
		return
	}
	ss.discard(context.Background(), s)
}

// discard removes a session that has ended for good, and its events, from the store.
func (ss *sessions) discard(ctx context.Context, s *session) {
	ctx, cancel := storing(ctx)
	defer cancel()
	s.discarded.Do(func() {
		if ss.opts.Store != nil {
			if _, err := ss.opts.Store.Take(ctx, sessionKey(s.id)); err != nil && !errors.Is(err, store.ErrNotFound) {
				ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not removed", "session", s.logged(), "error", err)
			}
		}
		for _, stream := range s.end() {
			if err := ss.events.drop(ctx, s.id, stream); err != nil {
				ss.opts.Logger.WarnContext(ctx, "mcphttp: events were not removed", "session", s.logged(), "error", err)
				return // they expire
			}
		}
	})
}

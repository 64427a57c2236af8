// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

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

func sessionKey(id string) string { return "psi/session/" + id }

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
	data, err := json.Marshal(rec)
	if err == nil {
		err = store.Update(ctx, ss.opts.Store, sessionKey(s.id), ss.opts.SessionIdle, func([]byte) ([]byte, error) { return data, nil })
	}
	if err != nil {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not saved", "session", s.id, "error", err)
	}
}

// restore goes on with a session that another replica has opened.
func (ss *sessions) restore(ctx context.Context, id string, p *mcp.Principal) *session {
	if ss.opts.Store == nil || store.CheckKey(sessionKey(id)) != nil {
		return nil
	}
	data, _, err := ss.opts.Store.Get(ctx, sessionKey(id))
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not restored", "session", id, "error", err)
		}
		return nil
	}
	var rec record
	if json.Unmarshal(data, &rec) != nil {
		return nil
	}
	if rec.Known != (p != nil) || p != nil && (p.Issuer != rec.Issuer || p.Subject != rec.Subject) {
		return nil
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.byID[id]; s != nil {
		return s
	}
	opts := ss.opts.legacy(id, p)
	opts.State = &rec.State
	s := ss.addLocked(id, opts)
	s.active, s.since, s.last = 0, time.Now(), time.Now().UnixMilli()
	return s
}

// forget ends a session for all replicas.
func (ss *sessions) forget(ctx context.Context, s *session) {
	s.legacy.Close()
	ss.remove(s)
	if ss.opts.Store == nil {
		return
	}
	if _, err := ss.opts.Store.Take(ctx, sessionKey(s.id)); err != nil && !errors.Is(err, store.ErrNotFound) {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not removed", "session", s.id, "error", err)
	}
}

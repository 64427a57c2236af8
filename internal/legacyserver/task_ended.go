// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyserver

import (
	"crypto/rand"
	"time"

	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
)

// In 2025-11-25, the client decides whether a call is a task; in the extension, the server
// does. If a server behind a gateway answers immediately a call that the client wants as a
// task, the session keeps the result as a task that has ended.

// Limits on such results in a session: their number, and how long they are kept unless the
// client requests a shorter time. If there are too many, the oldest is dropped.
const (
	maxEnded  = 64
	endedTime = 10 * time.Minute
)

// An endedTask is the result of a call that was answered immediately.
type endedTask struct {
	task    *task
	caller  *mcp.Principal
	expires time.Time
}

// keepEnded stores a result as a task of the sender of req.
func (s *Session) keepEnded(req *mcp.Request, terms *tasking.Terms, res mcp.Result) (*task, error) {
	raw, err := core.MarshalResult(res)
	if err != nil {
		return nil, unreadable(err)
	}
	now, ttl := time.Now().UTC().Truncate(time.Millisecond), endedTime
	if terms.TTL > 0 {
		ttl = min(ttl, terms.TTL)
	}
	ttlMs := ttl.Milliseconds()
	t := &task{TaskID: "ended-" + rand.Text(), Status: statusCompleted, CreatedAt: now, LastUpdatedAt: now, TTLMs: &ttlMs, Result: raw}
	if r, ok := res.(*mcp.CallToolResult); ok {
		t.isError = r.IsError
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ended) >= maxEnded {
		s.ended = s.ended[1:]
	}
	s.ended = append(s.ended, endedTask{t, req.Principal, now.Add(ttl)})
	kept := *t
	return &kept, nil
}

// endedTask returns a stored task of the sender of req, or nil. It returns an error if the
// sender may not use the task.
func (s *Session) endedTask(req *mcp.Request, id string) (*task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ended {
		switch {
		case e.task.TaskID != id, !e.caller.Is(req.Principal), !time.Now().Before(e.expires):
		case e.caller != nil && !tasking.MayUse(req.Principal.Scopes, e.caller.Scopes):
			return nil, mcp.NewInsufficientScopeError(e.caller.Scopes...)
		default:
			return e.task, nil
		}
	}
	return nil, nil
}

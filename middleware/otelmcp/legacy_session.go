// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
)

const keySessionID = attribute.Key("mcp.session.id")

// appendSession appends a digest of the ID of a request's session, if it has one.
func appendSession(ctx context.Context, attrs []attribute.KeyValue) []attribute.KeyValue {
	if s := mcp.SessionFromContext(ctx); s != nil && s.ID() != "" {
		attrs = append(attrs, keySessionID.String(redact.Session(s.ID())))
	}
	return attrs
}

// sessions tracks the sessions of a server, starting with their first request. The
// transport bounds their number.
type sessions struct {
	t    *telemetry
	mu   sync.RWMutex
	seen map[*mcp.Session]bool
}

func newSessions(t *telemetry) *sessions { return &sessions{t: t, seen: map[*mcp.Session]bool{}} }

// track starts measuring the session of a request, if it has one.
func (s *sessions) track(ctx context.Context, req *mcp.Request) {
	session := mcp.SessionFromContext(ctx)
	if session == nil || s.has(session) {
		return
	}
	select {
	case <-session.Done(): // a late request: the session is already recorded
		return
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[session] {
		return
	}
	s.seen[session] = true
	measured := s.t.startSession(appendPeer(nil, req)...)
	go func() {
		<-session.Done()
		s.mu.Lock()
		delete(s.seen, session)
		s.mu.Unlock()
		measured.record("")
	}()
}

func (s *sessions) has(session *mcp.Session) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.seen[session]
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/go-psi/psi/mcp"
)

// A session is a session or connection whose duration is measured.
type session struct {
	t     *telemetry
	attrs []attribute.KeyValue
	start time.Time
}

// startSession starts to measure a session, with attributes in addition to the options'.
func (t *telemetry) startSession(attrs ...attribute.KeyValue) *session {
	return &session{t: t, attrs: append(attrs, t.opts.Attributes...), start: time.Now()}
}

// record records the duration. kind is the error.type of a session that failed, or "".
func (s *session) record(kind string) {
	if kind != "" {
		s.attrs = append(s.attrs, keyErrorType.String(kind))
	}
	s.t.sessions.Record(context.Background(), time.Since(s.start).Seconds(), metric.WithAttributes(s.attrs...))
}

// sessions tracks the sessions of a server, from their first request on. The transport
// bounds their number.
type sessions struct {
	t    *telemetry
	mu   sync.RWMutex
	seen map[*mcp.Session]bool
}

func newSessions(t *telemetry) *sessions { return &sessions{t: t, seen: map[*mcp.Session]bool{}} }

// track starts to measure the session of a request, if it has one.
func (s *sessions) track(ctx context.Context, req *mcp.Request) {
	session := mcp.SessionFromContext(ctx)
	if session == nil || s.has(session) {
		return
	}
	select {
	case <-session.Done(): // a late request: the session was recorded
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

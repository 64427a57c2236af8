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

// session is one whose duration is measured.
type session struct {
	t     *telemetry
	attrs []attribute.KeyValue
	begun time.Time
}

// session begins one, with attributes besides those of the options.
func (t *telemetry) session(attrs ...attribute.KeyValue) *session {
	return &session{t: t, attrs: append(attrs, t.opts.Attributes...), begun: time.Now()}
}

// end is told the error.type of a session that failed.
func (s *session) end(kind string) {
	if kind != "" {
		s.attrs = append(s.attrs, keyErrorType.String(kind))
	}
	s.t.sessions.Record(context.Background(), time.Since(s.begun).Seconds(), metric.WithAttributes(s.attrs...))
}

// sessions are a server's, from their first request on. Whoever serves them bounds
// how many there are.
type sessions struct {
	t    *telemetry
	mu   sync.RWMutex
	seen map[*mcp.Session]bool
}

func newSessions(t *telemetry) *sessions { return &sessions{t: t, seen: map[*mcp.Session]bool{}} }

// saw is told of every request.
func (s *sessions) saw(ctx context.Context, req *mcp.Request) {
	of := mcp.SessionFrom(ctx)
	if of == nil || s.has(of) {
		return
	}
	select {
	case <-of.Done(): // a late request: the session was measured
		return
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[of] {
		return
	}
	s.seen[of] = true
	measured := s.t.session(appendPeer(nil, req)...)
	go func() {
		<-of.Done()
		s.mu.Lock()
		delete(s.seen, of)
		s.mu.Unlock()
		measured.end("")
	}()
}

func (s *sessions) has(of *mcp.Session) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.seen[of]
}

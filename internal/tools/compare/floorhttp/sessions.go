// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floorhttp

import (
	"crypto/rand"
	"net/http"
	"sync"
	"time"
)

// sessions serves HTTP with minimal sessions.
type sessions struct {
	*server
	mu   sync.Mutex
	open map[string]*session
}

type session struct {
	id   string
	used time.Time
}

func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		id = rand.Text()
		s.mu.Lock()
		s.open[id] = &session{id, time.Now()}
		s.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	} else if !s.use(id) {
		http.Error(w, "unknown session", http.StatusNotFound)
		return
	}
	if r.Method == http.MethodGet {
		s.streams.serve(w, r, nil)
		return
	}
	s.answer(w, r)
}

func (s *sessions) use(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.open[id]
	if found != nil {
		found.used = time.Now()
	}
	return found != nil
}

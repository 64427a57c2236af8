// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floorhttp

import (
	"net/http"
	"sync"
)

// streams holds the open event streams.
type streams struct {
	mu   sync.Mutex
	open map[chan []byte]bool
}

// serve keeps a stream open and writes the messages passed to tell.
func (s *streams) serve(w http.ResponseWriter, r *http.Request, first []byte) {
	news := make(chan []byte, 1)
	s.set(news, true)
	defer s.set(news, false)
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	if first != nil {
		_, _ = w.Write(event(first))
	}
	for out.Flush() == nil {
		select {
		case data := <-news:
			_, _ = w.Write(data)
		case <-r.Context().Done():
			return
		}
	}
}

func (s *streams) set(news chan []byte, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.open[news] = true
	} else {
		delete(s.open, news)
	}
}

// tell writes a message to all streams.
func (s *streams) tell(message []byte) {
	data := event(message)
	s.mu.Lock()
	defer s.mu.Unlock()
	for news := range s.open {
		select {
		case news <- data:
		default: // the last message is still queued
		}
	}
}

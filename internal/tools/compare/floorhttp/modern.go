// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floorhttp

import (
	"io"
	"net/http"
	"strconv"
)

func (s *server) serveModern(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Mcp-Method") == "subscriptions/listen" {
		s.streams.serve(w, r, []byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}`))
		return
	}
	s.answer(w, r)
}

// answer answers one message.
func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	message, err := s.Dispatch(r.Context(), body)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case message == nil:
		w.WriteHeader(http.StatusAccepted)
	case s.o.Stream:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(event(message))
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(message)))
		_, _ = w.Write(message)
	}
}

func event(message []byte) []byte {
	return append(append([]byte("event: message\ndata: "), message...), "\n\n"...)
}

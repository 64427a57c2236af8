// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// checkAnswers wraps the client's end of a stream and fails the test when the server
// answers a request twice, or one that was not made. Clients ignore such responses, so
// [Check] does not see them.
func checkAnswers(tb testing.TB, s mcp.Stream) mcp.Stream {
	return &answerStream{Stream: s, tb: tb, waiting: map[mcp.ID]bool{}}
}

type answerStream struct {
	mcp.Stream
	tb testing.TB

	mu      sync.Mutex
	waiting map[mcp.ID]bool // requests that were not answered
}

func (s *answerStream) Write(ctx context.Context, message []byte) error {
	if m, err := mcp.ParseMessage(message); err == nil && m.Request != nil && !m.ID.IsZero() {
		s.mu.Lock()
		s.waiting[m.ID] = true
		s.mu.Unlock()
	}
	return s.Stream.Write(ctx, message)
}

func (s *answerStream) Read(ctx context.Context) ([]byte, error) {
	data, err := s.Stream.Read(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range mcp.Messages(data) {
		if m.Response == nil {
			continue
		}
		if !s.waiting[m.ID] {
			s.tb.Errorf("mcptest: the server sent %.400s: no request waits for this response", data)
		}
		delete(s.waiting, m.ID)
	}
	return data, nil
}

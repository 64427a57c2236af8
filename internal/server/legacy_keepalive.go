// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"errors"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
)

// ErrSilent is the cause with which a session ends if its client does not answer pings.
var ErrSilent = errors.New("mcp: the client does not answer")

// maxMisses is the number of consecutive unanswered pings that end a session.
const maxMisses = 3

// keepAlive pings the client until ctx is done. It closes the session after maxMisses
// consecutive unanswered pings. An error response counts as an answer. Pings that could not
// be sent are not counted.
func (s *Session) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(s.server.KeepAlive)
	defer ticker.Stop()
	for misses := 0; misses < maxMisses; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		pingCtx, cancel := context.WithTimeout(ctx, s.server.KeepAlive)
		err := s.Ping(pingCtx)
		cancel()
		switch {
		case err == nil:
			misses = 0
		case !errors.Is(err, mcp.ErrNotDelivered) && ctx.Err() == nil:
			misses++
		}
	}
	s.server.Logger.WarnContext(ctx, "mcp: the client does not answer; closing its session", "session", redact.Session(s.details.ID), "pings", maxMisses)
	s.close(ErrSilent)
}

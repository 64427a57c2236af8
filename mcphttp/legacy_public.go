// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
)

// check panics if sessions cannot be shared as configured.
func (s *SessionOptions) check() {
	switch {
	case s.Shared == nil:
		return
	case s.Stateless:
		panic("mcphttp: Options.Sessions: Stateless and Shared exclude each other: without sessions there is nothing to share; remove one")
	}
	if err := s.Shared.check(); err != nil {
		panic("mcphttp: Options.Sessions.Shared: " + err.Error())
	}
}

// PeerHandler returns the handler at which other replicas pass on requests; see
// [SharedSessions]. Mount it where they reach it: beside the endpoint, or on a port of its own.
// It must not be wrapped in middleware that authenticates clients or checks their origin,
// because the replica that passes a request on has done both, as the keys prove. Middleware
// that sets values in the context of a request must wrap both handlers.
//
// It refuses all other requests with 403 and, without SharedSessions, every request.
func (h *Handler) PeerHandler() http.Handler {
	h.mustBeMade()
	return http.HandlerFunc(h.legacy.servePeer)
}

// Sessions yields the sessions of the legacy era that are open in this process at the time
// of the call, in no particular order.
func (h *Handler) Sessions() iter.Seq[*mcp.Session] {
	h.mustBeMade()
	return slices.Values(h.legacy.Sessions())
}

// Streams returns the event streams of the sessions of a handler, sorted by session and name.
func (internals) Streams(handler any) []seam.Stream {
	if h, ok := handler.(*Handler); ok {
		return h.legacy.Streams()
	}
	return nil
}

// ErrNoStream is returned by [CloseStream] if the request has no stream that the client
// could resume.
var ErrNoStream = errors.New("mcphttp: the request has no stream that its client could come back to")

// CloseStream closes the connection on which the client waits for the response to the
// request of ctx. The request continues, and the client reconnects for the response. Use it
// to free the connection while a long request runs. The client must speak 2025-11-25 and
// accept event streams; otherwise CloseStream returns [ErrNoStream].
func CloseStream(ctx context.Context) error {
	if v := valuesFromContext(ctx); v != nil && v.Stream != nil {
		return v.Stream.CloseConnection(ctx)
	}
	return ErrNoStream
}

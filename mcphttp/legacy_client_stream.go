// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// openStream opens the standalone stream of a session, or resumes a stream that has broken
// off, and reads it.
func (w *sessionWire) openStream(scope *callScope, s *clientSession, want, about mcp.ID, pos *streamPosition) (*transport.Message, error) {
	h := s.header(s.negotiatedVersion())
	if pos.lastID != "" {
		h[header.LastEventID] = []string{pos.lastID}
	}
	defer s.setStreamAnswered() // after a refusal was read, so that the handshake waits for it
	res, err := w.peer.get(scope.ctx, h)
	switch {
	case err != nil:
		return nil, brokenOff(err)
	case res.StatusCode == http.StatusOK && isStream(res):
		if want.IsZero() && pos.isOpened && pos.lastID == "" {
			w.deliver(&transport.Message{About: about, Lost: true}) // messages sent in the meantime are lost
		}
		pos.isOpened = true
		s.setStreamAnswered()
		return w.readStream(scope, res, want, about, pos)
	}
	defer closeBody(res)
	return nil, w.streamError(s, w.peer.readRefusal(res), want, pos)
}

// streamError interprets the server's refusal to open a stream.
func (w *sessionWire) streamError(s *clientSession, refusal *StatusError, want mcp.ID, pos *streamPosition) error {
	refusal.answer = nil // it answers the GET, not the call
	isStandalone := want.IsZero()
	switch {
	case refusal.Transient():
		return brokenOff(refusal)
	case isStandalone && pos.lastID != "" && refusal.Status/100 == 4:
		pos.lastID = "" // it cannot be resumed, but can be opened again
		return brokenOff(refusal)
	case isStandalone && refusal.isSessionUnknown() && s.hasID():
		return fmt.Errorf("mcphttp: there is no stream: %w: %w", transport.ErrSessionLost, refusal)
	}
	if isStandalone {
		s.setStreamRefused()
	}
	return fmt.Errorf("mcphttp: there is no stream: %w: %w", io.ErrUnexpectedEOF, refusal)
}

// reconnect resumes a stream that has broken off. It gives up after
// reconnectAttempts consecutive attempts that deliver nothing new.
func (w *sessionWire) reconnect(scope *callScope, s *clientSession, want, about mcp.ID, pos *streamPosition, broken error) (*transport.Message, error) {
	for errors.Is(broken, errBrokenOff) && pos.waitToReconnect(scope.ctx) {
		if t := mcptrace.ClientTraceFromContext(scope.ctx); t != nil && t.Reconnect != nil {
			t.Reconnect(mcptrace.ReconnectInfo{Kind: "stream", Err: broken})
		}
		r, err := w.openStream(scope, s, want, about, pos)
		if r != nil {
			return r, nil
		}
		broken = err
	}
	return nil, broken
}

// reconnectAttempts is how often in a row a client reconnects to a stream that delivers nothing
// new: for a quarter of a minute at least, which is longer than a server takes to restart.
const reconnectAttempts = 5

// The delay before reconnecting starts at the delay requested by the server, but at least
// firstDelay, and doubles after each failure, up to maxDelay or what the server requested.
// After streams without a message, it is at least firstDelay, doubled for each of them, up to
// idleDelay.
const (
	firstDelay = 500 * time.Millisecond
	idleDelay  = 5 * time.Second
	maxDelay   = 30 * time.Second
)

// waitToReconnect waits before the next attempt. It returns false if no attempt may follow.
func (pos *streamPosition) waitToReconnect(ctx context.Context) bool {
	if pos.failures >= reconnectAttempts {
		return false
	}
	asked := max(pos.retry, firstDelay)
	delay := max(async.Backoff(asked, max(asked, maxDelay), pos.failures), async.Backoff(firstDelay, idleDelay, pos.idle))
	pos.failures++
	pos.idle++
	return async.Sleep(ctx, delay) == nil
}

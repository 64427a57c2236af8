// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
)

// A Session is a conversation of the legacy era, from initialize on, as handlers
// and operators see it. Requests of the modern era have none. It is safe for
// concurrent use.
type Session struct{ legacy *Legacy }

// SessionFrom is the session of the request that ctx belongs to, or nil.
func SessionFrom(ctx context.Context) *Session {
	if req := RequestFrom(ctx); req != nil {
		return req.call.session
	}
	return nil
}

// ID is the session's id, "" on transports whose connection is the session.
func (s *Session) ID() string { return s.legacy.opts.ID }

// Version is the negotiated protocol version.
func (s *Session) Version() string { return s.legacy.version() }

// ClientInfo is what the client said of itself; nothing may depend on it.
func (s *Session) ClientInfo() *Implementation { return s.legacy.clientInfo() }

// Principal is the caller who opened the session, or nil.
func (s *Session) Principal() *Principal { return s.legacy.opts.Principal }

// Ping asks the client whether it is there, on the stream that belongs to no
// request. It returns [ErrNotDelivered] if there is none now. Any answer will do,
// an error included.
func (s *Session) Ping(ctx context.Context) error {
	out := s.legacy.standaloneSender()
	if out == nil {
		return ErrNotDelivered
	}
	_, err := s.legacy.roundTrip(ctx, out, legacyPing, nil)
	if _, ok := errors.AsType[*Error](err); ok {
		return nil
	}
	return err
}

// Notify sends a notification on the stream that belongs to no request. It
// returns [ErrNotDelivered] if there is none now.
func (s *Session) Notify(ctx context.Context, method string, params any) error {
	raw, err := notificationParams(method, params)
	if err != nil {
		return err
	}
	out := s.legacy.standaloneSender()
	if out == nil {
		return ErrNotDelivered
	}
	return out.Send(ctx, AppendNotification(nil, method, raw))
}

// Close ends the session: its requests are cancelled with [ErrClosed], and the
// client must begin anew. It does not wait for them.
func (s *Session) Close() { s.legacy.Close() }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.legacy.Context().Done() }

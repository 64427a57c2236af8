// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
)

// A Session is a conversation with a client of an older revision, from initialize on.
// Requests of the newest revision have none. It is safe for concurrent use.
type Session struct{ impl session }

// session is what an older revision implements.
type session interface {
	ID() string
	Version() string
	ClientInfo() *Implementation
	Principal() *Principal
	Ping(ctx context.Context) error
	Notify(ctx context.Context, method string, params json.RawMessage) error
	Close()
	Done() <-chan struct{}
}

// SessionFromContext returns the session of the request that ctx belongs to, or nil.
func SessionFromContext(ctx context.Context) *Session {
	if req := RequestFromContext(ctx); req != nil {
		return req.sharedCall().session
	}
	return nil
}

// ID returns the id of the session, "" on transports whose connection is the session.
func (s *Session) ID() string { return s.impl.ID() }

// Version returns the negotiated protocol version.
func (s *Session) Version() string { return s.impl.Version() }

// ClientInfo returns what the client said of itself, nil if nothing. Nothing may depend
// on it.
func (s *Session) ClientInfo() *Implementation { return s.impl.ClientInfo() }

// Principal returns the caller who opened the session, or nil.
func (s *Session) Principal() *Principal { return s.impl.Principal() }

// Ping asks the client whether it is there, on the stream that belongs to no request. It
// returns [ErrNotDelivered] if there is none now. Any response will do, an error
// included.
func (s *Session) Ping(ctx context.Context) error { return s.impl.Ping(ctx) }

// Notify sends a notification on the stream that belongs to no request; params are as in
// [NewRequest]. It returns [ErrNotDelivered] if there is no such stream now.
func (s *Session) Notify(ctx context.Context, method string, params any) error {
	raw, err := notificationParams(method, params)
	if err != nil {
		return err
	}
	return s.impl.Notify(ctx, method, raw)
}

// Close ends the session: its requests are cancelled with [ErrClosed], and the client
// must initialize again. It does not wait for them.
func (s *Session) Close() { s.impl.Close() }

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.impl.Done() }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/revision"
)

// LegacyVersions returns the revisions that begin with initialize, newest first.
func LegacyVersions() []string { return revision.Names() }

// allVersions returns the revisions that clients and servers speak, newest first.
func allVersions() []string { return slices.Concat(ModernVersions(), LegacyVersions()) }

// A Session is a connection to a client of an older revision, which starts with initialize.
// Requests of the newest revision have no session. It is safe for concurrent use.
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

// mustBeMade panics if psi did not make the session. SessionFromContext returns nil for
// requests without one, so this mistake is easily made.
func (s *Session) mustBeMade() {
	if s == nil {
		panic("mcp: the Session is nil: requests of the newest revision have none")
	}
	made.Check(s.impl != nil, "mcp: a Session", "psi")
}

// SessionFromContext returns the session of the request that ctx belongs to. It is nil if
// the request is one of the newest revision, which has no sessions, or if ctx belongs to no
// request. The methods of a nil Session panic.
func SessionFromContext(ctx context.Context) *Session {
	if req := RequestFromContext(ctx); req != nil {
		return req.sharedCall().session
	}
	return nil
}

// ID returns the id of the session, "" on transports whose connection is the session.
func (s *Session) ID() string {
	s.mustBeMade()
	return s.impl.ID()
}

// Version returns the negotiated protocol version.
func (s *Session) Version() string {
	s.mustBeMade()
	return s.impl.Version()
}

// ClientInfo returns the name and version that the client gives, or nil. It is unverified.
func (s *Session) ClientInfo() *Implementation {
	s.mustBeMade()
	return s.impl.ClientInfo()
}

// Principal returns the caller who opened the session, or nil.
func (s *Session) Principal() *Principal {
	s.mustBeMade()
	return s.impl.Principal()
}

// Ping sends a ping to the client and waits for the response, which may be an error. It
// returns [ErrNotDelivered] if the client has no stream open for messages that belong to
// no request.
func (s *Session) Ping(ctx context.Context) error {
	s.mustBeMade()
	return s.impl.Ping(ctx)
}

// Notify sends a notification that belongs to no request; params are as in [NewRequest]. It
// returns [ErrNotDelivered] if the client has no stream open for such messages.
func (s *Session) Notify(ctx context.Context, method string, params any) error {
	s.mustBeMade()
	raw, err := notificationParams(method, params)
	if err != nil {
		return err
	}
	return s.impl.Notify(ctx, method, raw)
}

// Close ends the session: its requests are cancelled with [ErrClosed], and the client
// must initialize again. It does not wait for them.
func (s *Session) Close() {
	s.mustBeMade()
	s.impl.Close()
}

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} {
	s.mustBeMade()
	return s.impl.Done()
}

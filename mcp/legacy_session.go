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

// session is the implementation of a [Session], provided by the older revisions.
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

// mustBeMade panics unless s was created by psi. SessionFromContext returns nil for requests
// without a session, so nil sessions are an easy mistake.
func (s *Session) mustBeMade() {
	if s == nil {
		panic("mcp: the Session is nil: requests of the newest revision have none")
	}
	made.Check(s.impl != nil, "mcp: a Session", "psi")
}

// SessionFromContext returns the session of the request that ctx belongs to. It returns nil
// for requests of the newest revision, which has no sessions, and if ctx does not belong to a
// request. The methods of a nil Session panic.
func SessionFromContext(ctx context.Context) *Session {
	if req := RequestFromContext(ctx); req != nil {
		return req.sharedCall().session
	}
	return nil
}

// ID returns the ID of the session, or "" on transports where the connection is the session.
func (s *Session) ID() string {
	s.mustBeMade()
	return s.impl.ID()
}

// Version returns the negotiated protocol version.
func (s *Session) Version() string {
	s.mustBeMade()
	return s.impl.Version()
}

// ClientInfo returns the name and version claimed by the client, or nil. It is not verified.
func (s *Session) ClientInfo() *Implementation {
	s.mustBeMade()
	return s.impl.ClientInfo()
}

// Principal returns the authenticated caller that opened the session, or nil.
func (s *Session) Principal() *Principal {
	s.mustBeMade()
	return s.impl.Principal()
}

// Ping sends a ping to the client and waits for the response, which may be an error. It
// returns [ErrNotDelivered] if the client has no open stream for messages unrelated to a
// request.
func (s *Session) Ping(ctx context.Context) error {
	s.mustBeMade()
	return s.impl.Ping(ctx)
}

// Notify sends a notification unrelated to a request; params are as in [NewRequest]. It
// returns [ErrNotDelivered] if the client has no open stream for such messages.
func (s *Session) Notify(ctx context.Context, method string, params any) error {
	s.mustBeMade()
	raw, err := notificationParams(method, params)
	if err != nil {
		return err
	}
	return s.impl.Notify(ctx, method, raw)
}

// Close ends the session. It cancels the session's requests with [ErrClosed], but does not
// wait for them. The client must initialize a new session. Close returns nil.
func (s *Session) Close() error {
	s.mustBeMade()
	s.impl.Close()
	return nil
}

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} {
	s.mustBeMade()
	return s.impl.Done()
}

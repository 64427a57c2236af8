// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyserver

import (
	"context"
	"encoding/json"
	"maps"
	mathrand "math/rand/v2"
	"slices"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// State is what another process needs to continue a session. It encodes as JSON.
type State struct {
	Version       string           `json:"version"`
	ClientInfo    json.RawMessage  `json:"clientInfo,omitempty"`
	Capabilities  json.RawMessage  `json:"capabilities,omitempty"`
	Level         mcp.LoggingLevel `json:"level"`
	Subscriptions []string         `json:"subscriptions,omitempty"`
	Tasks         bool             `json:"tasks,omitzero"`
}

// State returns the state of the session now. It changes with the messages that
// [ChangesSession] names.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return State{
		Version: s.rev.String(), ClientInfo: s.info, Capabilities: s.caps, Level: s.level,
		Subscriptions: slices.Sorted(maps.Keys(s.subscriptions)), Tasks: s.tasks,
	}
}

func (s *Session) restore(state *State) {
	s.rev, s.info, s.caps, s.level = revision.Parse(state.Version), state.ClientInfo, state.Capabilities, state.Level
	s.tasks = state.Tasks
	s.asked = mathrand.Int64N(1 << 52) //nolint:gosec // ids must differ from those of other processes that serve the session
	for _, uri := range state.Subscriptions {
		_, _ = s.addSubscription(uri)
	}
}

// Adopt takes over what another process has changed in the state of the session: the log
// level and the subscriptions. If the stream of the session is in this process, it sends
// the updates of new subscriptions from then on, and one for each that it may have missed.
func (s *Session) Adopt(ctx context.Context, state *State) error {
	now := map[string]struct{}{}
	for _, uri := range state.Subscriptions {
		now[uri] = struct{}{}
	}
	s.mu.Lock()
	before, f := s.subscriptions, s.feed
	s.level, s.subscriptions = state.Level, now
	s.mu.Unlock()
	if err := s.resubscribe(ctx); err != nil || f == nil {
		return err
	}
	for _, uri := range state.Subscriptions {
		if _, known := before[uri]; !known {
			_ = sendChange(ctx, f.out, mcp.NotificationResourceUpdated, uri) // if it fails, the client is gone
		}
	}
	return nil
}

// ApplyTo changes a state of the session, such as the one that another process has stored,
// as the call has changed that of this process. It is called after Serve.
func (c *Call) ApplyTo(state *State) {
	for _, item := range c.batch {
		item.ApplyTo(state)
	}
	if c.req == nil || c.err != nil {
		return
	}
	uri, _ := core.Target(c.req)
	i, known := slices.BinarySearch(state.Subscriptions, uri)
	switch c.req.Method {
	case revision.Initialize:
		*state = c.session.State()
	case revision.SetLevel:
		state.Level, _ = levelIn(c.req) // the session may have taken over another one since
	case mcp.MethodSubscribe:
		if !known {
			state.Subscriptions = slices.Insert(state.Subscriptions, i, uri)
		}
	case revision.Unsubscribe:
		if known {
			state.Subscriptions = slices.Delete(state.Subscriptions, i, i+1)
		}
	}
}

// ChangesSession reports whether m can change the [State] of its session.
func ChangesSession(m *transport.Message) bool {
	switch m.Method {
	case revision.Initialize, revision.SetLevel, mcp.MethodSubscribe, revision.Unsubscribe:
		return true
	}
	return false
}

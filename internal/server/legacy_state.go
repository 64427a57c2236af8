// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"encoding/json"
	"maps"
	mathrand "math/rand/v2"
	"slices"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
)

// State is the part of a session that another process needs to continue it. It encodes as
// JSON.
type State struct {
	Version       string           `json:"version"`
	ClientInfo    json.RawMessage  `json:"clientInfo,omitempty"`
	Capabilities  json.RawMessage  `json:"capabilities,omitempty"`
	Level         mcp.LoggingLevel `json:"level"`
	Subscriptions []string         `json:"subscriptions,omitempty"`
}

// State returns the current state of the session. It is changed by the messages for which
// [Call.ChangesSession] returns true.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return State{
		Version: s.rev.String(), ClientInfo: s.info, Capabilities: s.caps, Level: s.level,
		Subscriptions: slices.Sorted(maps.Keys(s.subscriptions)),
	}
}

func (s *Session) restore(state *State) {
	s.rev, s.info, s.caps, s.level = revision.Parse(state.Version), state.ClientInfo, state.Capabilities, state.Level
	s.asked = mathrand.Int64N(1 << 52)            //nolint:gosec // ids must differ from those of other processes that serve the session
	s.setSubscriptionsLocked(state.Subscriptions) // no other goroutine knows the session
}

// Continue makes a session continue from the state that another process has stored. The
// session must have no standalone stream.
func (s *Session) Continue(state *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = state.Level
	s.setSubscriptionsLocked(state.Subscriptions)
}

// setSubscriptionsLocked replaces the subscriptions. Those beyond the limits of this process
// are left out.
func (s *Session) setSubscriptionsLocked(uris []string) {
	for uri := range s.subscriptions {
		if !slices.Contains(uris, uri) {
			s.removeSubscriptionLocked(uri)
		}
	}
	for _, uri := range uris {
		_, _ = s.addSubscriptionLocked(uri)
	}
}

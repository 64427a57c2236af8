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
// [ChangesSession] returns true.
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

// Adopt applies changes that another process has made to the state of the session: the log
// level and the subscriptions. If the session's standalone stream is in this process, it
// sends the updates of new subscriptions from then on, and one update for each new
// subscription, because updates may have been missed.
func (s *Session) Adopt(ctx context.Context, state *State) error {
	s.mu.Lock()
	s.level = state.Level
	added, f := s.setSubscriptionsLocked(state.Subscriptions), s.feed
	s.mu.Unlock()
	if err := s.resubscribe(ctx); err != nil || f == nil {
		return err
	}
	for _, uri := range added {
		_ = sendChange(ctx, f.out, mcp.NotificationResourceUpdated, uri) // if it fails, the client is gone
	}
	return nil
}

// setSubscriptionsLocked replaces the subscriptions and returns the new ones. Those beyond
// the limits of this process are left out.
func (s *Session) setSubscriptionsLocked(uris []string) (added []string) {
	for uri := range s.subscriptions {
		if !slices.Contains(uris, uri) {
			s.removeSubscriptionLocked(uri)
		}
	}
	for _, uri := range uris {
		if known, err := s.addSubscriptionLocked(uri); err == nil && !known {
			added = append(added, uri)
		}
	}
	return added
}

// ApplyTo applies the effect of the call on its session to state, such as a state stored by
// another process. It is called after Serve.
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
		state.Level, _ = levelIn(c.req) // the session may have adopted another level since
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

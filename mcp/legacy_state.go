// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"maps"
	mathrand "math/rand/v2"
	"slices"
)

// LegacyState is what another process needs to go on with a session. It encodes
// as JSON.
type LegacyState struct {
	Version       string          `json:"version"`
	ClientInfo    json.RawMessage `json:"clientInfo,omitempty"`
	Capabilities  json.RawMessage `json:"capabilities,omitempty"`
	Level         LoggingLevel    `json:"level"`
	Subscriptions []string        `json:"subscriptions,omitempty"`
}

// State is the state of the session now. It changes with the messages that
// [Message.ChangesSession] names.
func (l *Legacy) State() LegacyState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LegacyState{
		Version: l.era.rev.String(), ClientInfo: l.info, Capabilities: l.caps, Level: l.level,
		Subscriptions: slices.Sorted(maps.Keys(l.subscriptions)),
	}
}

func (l *Legacy) resume(s *LegacyState) {
	l.era, l.info, l.caps, l.level = legacyEra{revisionOf(s.Version)}, s.ClientInfo, s.Capabilities, s.Level
	if len(s.Subscriptions) > 0 {
		l.subscriptions = map[string]struct{}{}
	}
	l.asked = mathrand.Int64N(1 << 52) //nolint:gosec // it is to differ from where others count who serve the session
	for _, uri := range s.Subscriptions {
		l.subscriptions[uri] = struct{}{}
	}
}

// ChangesSession reports whether a message changes what a session remembers.
func (m *Message) ChangesSession() bool {
	if m.Request == nil {
		return false
	}
	switch m.Request.Method {
	case legacyInitialize, legacySetLevel, legacySubscribe, legacyUnsubscribe:
		return true
	}
	return false
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// names maps the IDs and progress tokens of the recording to the live ones of the client.
type names struct {
	mu     sync.Mutex
	ids    map[transport.ID]transport.ID
	tokens map[transport.ID]transport.ID
}

func newNames() *names {
	return &names{ids: map[transport.ID]transport.ID{}, tokens: map[transport.ID]transport.ID{}}
}

// add records that the client has sent live, which corresponds to recorded.
func (n *names) add(recorded, live *transport.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ids[recorded.ID.Canonical()] = live.ID
	n.tokens[progressToken(recorded)] = progressToken(live)
}

func progressToken(m *transport.Message) transport.ID {
	token, _ := transport.ParseID(jsonscan.Member(jsonscan.Member(m.Params, "_meta"), mcp.MetaProgressToken))
	return token.Canonical()
}

// all returns the client's IDs.
func (n *names) all() iter.Seq[transport.ID] {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Values(slices.Collect(maps.Values(n.ids)))
}

// live returns the client's ID for an ID of the recording.
func (n *names) live(recorded transport.ID) transport.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ids[recorded.Canonical()]
}

// response returns a recorded response with the client's IDs and tokens.
func (n *names) response(recorded *transport.Message) *transport.Message {
	m := *recorded
	m.ID = n.live(m.ID)
	m.Result = n.renamed(m.Result)
	return &m
}

// notification returns a recorded request or notification with the client's IDs and tokens.
func (n *names) notification(recorded *transport.Message) transport.Message {
	m := *recorded
	m.Params = n.renamed(m.Params)
	return m
}

// renamed returns params or a result with the client's IDs and tokens.
func (n *names) renamed(raw json.RawMessage) json.RawMessage {
	n.mu.Lock()
	defer n.mu.Unlock()
	raw = replaceID(raw, mcp.MetaProgressToken, n.tokens)
	meta := jsonscan.Member(raw, "_meta")
	renamed := replaceID(replaceID(meta, mcp.MetaSubscriptionID, n.ids), mcp.MetaProgressToken, n.tokens)
	return replaceMember(raw, "_meta", renamed)
}

// replaceID replaces the ID in a member of an object.
func replaceID(object json.RawMessage, name string, by map[transport.ID]transport.ID) json.RawMessage {
	id, ok := transport.ParseID(jsonscan.Member(object, name))
	if other := by[id.Canonical()]; ok && !other.IsZero() {
		return replaceMember(object, name, json.RawMessage(other.String()))
	}
	return object
}

// replaceMember replaces a member of an object, if the object has it.
func replaceMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	if jsonscan.Member(object, name) == nil {
		return object
	}
	dst := append(jsonscan.AppendKey([]byte{'{'}, name), value...)
	return jsonscan.AppendMembers(dst, object, name)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Meta is a _meta object: metadata by key, each value raw JSON so that nothing
// is lost on the way. Keys follow the grammar of basic/index#meta.
type Meta map[string]json.RawMessage

// Get decodes the value under key into v, a pointer. It reports false if there
// is none, or none that fits.
func (m Meta) Get(key string, v any) bool {
	raw, ok := m[key]
	return ok && unmarshal(raw, v) == nil
}

// Set encodes v as the value under key, making the map if it is nil. It panics
// if v cannot be encoded, which is a mistake of the program.
func (m *Meta) Set(key string, v any) {
	raw, err := marshal(v)
	if err != nil {
		panic(fmt.Sprintf("mcp: _meta value for %q: %v", key, err))
	}
	if *m == nil {
		*m = Meta{}
	}
	(*m)[key] = raw
}

// The _meta keys of the specification.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaProgressToken      = "progressToken"
)

// withoutKey returns m without a key, unchanged if it does not have it.
func withoutKey(m Meta, key string) Meta {
	if _, ok := m[key]; !ok {
		return m
	}
	m = maps.Clone(m)
	delete(m, key)
	return m
}

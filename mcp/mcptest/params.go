// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"encoding/json"
	"maps"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
)

// params is a params object to which a client adds what the protocol wants.
type params struct {
	members map[string]json.RawMessage
	meta    mcp.Meta
}

// newParams takes nil, raw JSON or any value that encodes as an object.
func newParams(v any) (*params, error) {
	p := &params{members: map[string]json.RawMessage{}}
	raw, ok := v.(json.RawMessage)
	if v == nil || ok && raw == nil {
		return p, nil
	}
	if !ok {
		var err error
		if raw, err = marshal(v); err != nil {
			return nil, err
		}
	}
	if err := jsonv2.Unmarshal(raw, &p.members); err != nil {
		return nil, err
	}
	if meta := p.members["_meta"]; meta != nil {
		return p, jsonv2.Unmarshal(meta, &p.meta)
	}
	return p, nil
}

// setDefault sets a member of _meta that is not set.
func (p *params) setDefault(key string, v any) {
	if _, ok := p.meta[key]; !ok {
		p.meta.Set(key, v)
	}
}

// addMeta adds what a request of the modern era says of its sender.
func (p *params) addMeta(level mcp.LoggingLevel, caps *mcp.ClientCapabilities) {
	p.setDefault(mcp.MetaProtocolVersion, mcp.LatestVersion)
	p.setDefault(mcp.MetaClientCapabilities, caps)
	p.setDefault(mcp.MetaClientInfo, self)
	if level != "" {
		p.setDefault(mcp.MetaLogLevel, level)
	}
}

// answered is p again, with the answers to the questions of a result.
func (p *params) answered(answers map[string]json.RawMessage, state *string) *params {
	again := &params{maps.Clone(p.members), maps.Clone(p.meta)}
	delete(again.members, "inputResponses")
	delete(again.members, "requestState")
	if answers != nil {
		again.members["inputResponses"] = mustMarshal(answers)
	}
	if state != nil {
		again.members["requestState"] = mustMarshal(*state)
	}
	return again
}

// encode is the params object, nil if it is empty.
func (p *params) encode() json.RawMessage {
	members := maps.Clone(p.members)
	delete(members, "_meta")
	if len(p.meta) > 0 {
		members["_meta"] = mustMarshal(p.meta)
	}
	if len(members) == 0 {
		return nil
	}
	return mustMarshal(members)
}

func marshal(v any) ([]byte, error) { return jsonv2.Marshal(v, jsonv2.Deterministic(true)) }

func mustMarshal(v any) []byte {
	data, err := marshal(v)
	if err != nil {
		panic("mcptest: " + err.Error())
	}
	return data
}

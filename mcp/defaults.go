// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"

	"github.com/go-psi/psi/internal/jsonscan"
)

// defaults are the values that a schema gives to properties that are absent, by name.
type defaults map[string]json.RawMessage

// defaultsOf returns the defaults of a schema's properties, nil if there are none.
func defaultsOf(schema json.RawMessage) defaults {
	var root struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if unmarshal(schema, &root) != nil {
		return nil
	}
	var d defaults
	for name, property := range root.Properties {
		if value := memberOf(property, "default"); value != nil {
			if d == nil {
				d = defaults{}
			}
			d[name] = value
		}
	}
	return d
}

// fill returns an object with the defaults of the members that it lacks, or has as
// null. What a caller gives stands as it is: a default is never merged into it.
func (d defaults) fill(object json.RawMessage) json.RawMessage {
	if len(d) == 0 {
		return object
	}
	s := jsonscan.Get(object, 0)
	defer s.Release()
	filled := []byte{'{'}
	given := map[string]bool{}
	for s.Object(); s.Member(); {
		name := string(s.Name())
		value := s.Value()
		if d[name] != nil && string(value) == "null" {
			continue
		}
		given[name] = true
		filled = append(appendMember(filled, name), value...)
	}
	for _, name := range sortedKeys(d) {
		if !given[name] {
			filled = append(appendMember(filled, name), d[name]...)
		}
	}
	return append(filled, '}')
}

// appendMember begins a member whose name is any text.
func appendMember(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(jsonscan.AppendString(dst, name), ':')
}

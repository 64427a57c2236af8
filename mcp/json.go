// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
)

// Extra holds the members of an object that this package does not know. They
// are kept when a message is passed on.
type Extra map[string]json.RawMessage

// marshal is the one encoder of this package: deterministic, so that equal
// values are equal bytes.
func marshal(v any) ([]byte, error) { return strictjson.MarshalWith(plainEncoding, plainly(v)) }

// unmarshal is the one decoder: names match with case, no member stands twice,
// text is valid UTF-8.
func unmarshal(data []byte, v any) error {
	return strictjson.UnmarshalWith(plainDecoding, data, plainly(v))
}

// mustMarshal encodes values of this package's own types. What is not valid UTF-8 in a
// text, such as the error that a call is cancelled with, is replaced.
func mustMarshal(v any) []byte { return strictjson.MustMarshalWith(plainEncoding, plainly(v)) }

// marshalValue encodes a value of the program's own, and decode decodes into one; see
// [strictjson.UnmarshalValue].
func marshalValue(v any) ([]byte, error) { return strictjson.MarshalValue(v) }

func decode(data []byte, v any) error { return strictjson.UnmarshalValue(data, v) }

// decodeProblem tells a peer what of its value did not fit, without naming Go
// types: a JSON pointer, and what stood there, or what the type's own decoder says.
func decodeProblem(what string, err error) string {
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) {
		return what + ": malformed"
	}
	where := string(semantic.JSONPointer)
	if where == "" {
		where = "the value itself"
	}
	switch why := semantic.Err; {
	case errors.Is(why, strconv.ErrRange):
		return fmt.Sprintf("%s: %s is out of range", what, where)
	case errors.Is(why, strconv.ErrSyntax) && semantic.JSONKind == '0':
		return fmt.Sprintf("%s: %s must be an integer", what, where)
	case why != nil:
		return fmt.Sprintf("%s: %s: %v", what, where, why)
	}
	if kind := semantic.JSONKind; kind != 0 {
		return fmt.Sprintf("%s: %s must not be a JSON %s", what, where, kind)
	}
	return fmt.Sprintf("%s: %s does not fit", what, where)
}

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
		if value := jsonscan.Member(property, "default"); value != nil {
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Extra holds the members of an object that this package does not know. They
// are kept when a message is passed on.
type Extra map[string]json.RawMessage

// marshal is the one encoder of this package: deterministic, so that equal
// values are equal bytes.
func marshal(v any) ([]byte, error) { return jsonv2.Marshal(v, jsonv2.Deterministic(true)) }

// unmarshal is the one decoder: names match with case, no member stands twice,
// text is valid UTF-8.
func unmarshal(data []byte, v any) error { return jsonv2.Unmarshal(data, v) }

// mustMarshal encodes values of this package's own types. What is not valid UTF-8 in a
// text, such as the error that a call is cancelled with, is replaced.
func mustMarshal(v any) []byte {
	data, err := jsonv2.Marshal(v, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(fmt.Sprintf("mcp: encoding %T: %v", v, err))
	}
	return data
}

// decodeProblem tells a peer what of its value did not fit, without naming Go
// types: a JSON pointer, and what stood there.
func decodeProblem(what string, err error) string {
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) {
		return what + ": malformed"
	}
	where := string(semantic.JSONPointer)
	if where == "" {
		where = "the value itself"
	}
	if kind := semantic.JSONKind; kind != 0 {
		return fmt.Sprintf("%s: %s must not be a JSON %s", what, where, kind)
	}
	return fmt.Sprintf("%s: %s does not fit", what, where)
}

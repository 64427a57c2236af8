// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"

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

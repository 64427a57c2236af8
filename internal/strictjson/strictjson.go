// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package strictjson

import (
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Options are additional options, such as functions for types. Nil means none.
type Options = jsonv2.Options

// Marshal encodes deterministically: equal values have equal encodings.
func Marshal(v any) ([]byte, error) { return MarshalWith(nil, v) }

// MarshalWith is like Marshal, with options.
func MarshalWith(o Options, v any) ([]byte, error) {
	return jsonv2.Marshal(v, jsonv2.Deterministic(true), o)
}

// Unmarshal decodes strictly: names are case-sensitive, members must not be repeated, and
// text must be valid UTF-8. Integers are decoded as by [Integers].
func Unmarshal(data []byte, v any) error { return jsonv2.Unmarshal(data, v, lenientIntegers) }

// UnmarshalWith is like Unmarshal, with options. Functions for types replace [Integers].
func UnmarshalWith(o Options, data []byte, v any) error {
	return jsonv2.Unmarshal(data, v, lenientIntegers, o)
}

// MustMarshal encodes a value that can always be encoded. Invalid UTF-8 in text, such as
// the error that a call is cancelled with, is replaced.
func MustMarshal(v any) []byte { return MustMarshalWith(nil, v) }

// MustMarshalWith is like MustMarshal, with options.
func MustMarshalWith(o Options, v any) []byte {
	data, err := jsonv2.Marshal(v, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true), o)
	if err != nil {
		panic(fmt.Sprintf("mcp: encoding %T: %v", v, err))
	}
	return data
}

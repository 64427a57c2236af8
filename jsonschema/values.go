// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import "github.com/go-psi/psi/internal/strictjson"

// Marshal encodes v in the form that [For] describes, and as package mcp does: as
// github.com/go-json-experiment/json, but a [time.Duration] is a string such as "1m30s",
// and a [net/url.URL] is a string.
func Marshal(v any) ([]byte, error) { return strictjson.MarshalValue(v) }

// Unmarshal decodes data into v, which is a pointer, in the form that [For] describes, and
// as package mcp does; see [Marshal]. An integer is one however it is written: 1.0 and 1e2
// fit an int.
func Unmarshal(data []byte, v any) error { return strictjson.UnmarshalValue(data, v) }

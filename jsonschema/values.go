// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import "github.com/go-psi/psi/internal/strictjson"

// Marshal encodes v as package mcp does, in the form that [For] describes: like
// github.com/go-json-experiment/json, except that a [time.Duration] is encoded as a string
// such as "1m30s", and a [net/url.URL] as a string.
func Marshal(v any) ([]byte, error) { return strictjson.MarshalValue(v) }

// Unmarshal decodes data into v, which must be a pointer, as package mcp does, from the
// form that [For] describes; see [Marshal]. Integers may be written in any form: 1.0 and
// 1e2 can be decoded into an int.
func Unmarshal(data []byte, v any) error { return strictjson.UnmarshalValue(data, v) }

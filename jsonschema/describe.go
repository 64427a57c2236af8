// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	jsonv1 "encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/schematree"
)

// describeValue describes v in a few words: `string "abc"`, `number 3`, `object`.
func describeValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean " + strconv.FormatBool(v)
	case jsonv1.Number:
		return "number " + clip(v.String(), maxValue)
	case string:
		return "string " + quote(v)
	case []any:
		return "array of " + count(len(v), "item")
	case map[string]any:
		return "object with " + count(len(v), "member")
	}
	return "value"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// compact returns v as JSON, shortened if it is long.
func compact(v any) string {
	if n, ok := v.(jsonv1.Number); ok {
		return clip(n.String(), maxValue)
	}
	if s, ok := v.(string); ok {
		return quote(s)
	}
	b, err := marshal(v)
	if err != nil {
		return describeValue(v)
	}
	return clip(string(b), maxValue)
}

// marshal encodes any Go value as JSON, deterministically. It preserves the text of numbers.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), json.WithMarshalers(json.MarshalFunc(
		func(n jsonv1.Number) ([]byte, error) { return []byte(n), nil })))
}

func compactAll(values []any) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = compact(v)
	}
	return list
}

// quote returns s as a JSON string, shortened if it is long.
func quote(s string) string {
	return string(jsonscan.AppendString(nil, oneLine(clip(s, maxValue))))
}

// clip shortens s to about n bytes, without splitting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// oneLine replaces characters that are not printable with spaces.
func oneLine(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// describeSchema describes the value that the schema at pointer expects, for a missing value.
func describeSchema(document any, pointer []string) string {
	const hops = 8 // bound on references
	for range hops {
		schema, _ := schematree.Lookup(document, pointer)
		obj, ok := schema.(map[string]any)
		if !ok {
			return "value"
		}
		switch t := obj["type"].(type) {
		case string:
			return t
		case []any:
			return typeList(stringsOf(t))
		}
		ref, _ := obj["$ref"].(string)
		at, local := schematree.LocalRef(ref)
		if !local {
			return "value"
		}
		pointer = schematree.Split(at)
	}
	return "value"
}

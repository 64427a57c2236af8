// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	jsonv1 "encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/decimal"
	"github.com/go-psi/psi/internal/jsonscan"
)

// typeNames are the types in the order in which they are listed.
var typeNames = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

// hasType reports whether a value of a tree has a type, or one of a list of types.
func hasType(value, want any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(w any) bool { return hasType(value, w) })
	}
	switch v := value.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case jsonv1.Number:
		return want == "number" || want == "integer" && exact(v).IsInteger()
	case string:
		return want == "string"
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

// sortedTypes returns the value of a keyword "type" as a list.
func sortedTypes(want any) []string {
	if name, ok := want.(string); ok {
		return []string{name}
	}
	names := stringsOf(listOf(want))
	slices.SortFunc(names, func(a, b string) int { return slices.Index(typeNames, a) - slices.Index(typeNames, b) })
	return names
}

// exact returns the value of a number of a tree, which readTree has read.
func exact(n jsonv1.Number) decimal.Number {
	d, _ := decimal.Parse(n.String())
	return d
}

// equal compares two trees. Numbers are equal if they have the same value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case jsonv1.Number:
		b, ok := b.(jsonv1.Number)
		return ok && (a == b || exact(a) == exact(b))
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false // cannot be compared with ==
	}
	return a == b
}

// duplicates returns the first item that is equal to one before it, and that one.
func duplicates(list []any) (first, second int, found bool) {
	seen := make(map[string]int, len(list))
	var key []byte
	for i, v := range list {
		key = appendKey(key[:0], v)
		if first, found := seen[string(key)]; found {
			return first, i, true
		}
		seen[string(key)] = i
	}
	return 0, 0, false
}

// appendKey appends a text that two values share if they are equal.
func appendKey(to []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(to, v)
	case jsonv1.Number:
		return append(to, exact(v).String()...)
	case string:
		return jsonscan.AppendString(to, v)
	case []any:
		to = append(to, '[')
		for _, item := range v {
			to = append(appendKey(to, item), ',')
		}
		return append(to, ']')
	case map[string]any:
		to = append(to, '{')
		for _, name := range sortedKeys(v) {
			to = append(jsonscan.AppendString(to, name), ':')
			to = append(appendKey(to, v[name]), ',')
		}
		return append(to, '}')
	}
	return append(to, "null"...)
}

// constants returns the values of schemas that each have a const, nil if these are
// not all.
func constants(schemas []any) (values []any) {
	for _, schema := range schemas {
		obj, _ := schema.(map[string]any)
		value, ok := obj["const"]
		if !ok {
			return nil
		}
		values = append(values, value)
	}
	return values
}

// sizeOf returns the value of a keyword that bounds a length.
func sizeOf(v any) (int, bool) {
	n, ok := v.(jsonv1.Number)
	if !ok {
		return 0, false
	}
	whole, ok := wholeNumber([]byte(n))
	return int(whole), ok
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func stringsOf(values []any) []string {
	var list []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

func typeList(types []string) string {
	switch len(types) {
	case 0:
		return "value"
	case 1:
		return types[0]
	}
	last := len(types) - 1
	return strings.Join(types[:last], ", ") + " or " + types[last]
}

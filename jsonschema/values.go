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

// exact returns the value of a number of a tree, which readTree has read.
func exact(n jsonv1.Number) decimal.Number {
	d, _ := decimal.Parse(n.String())
	return d
}

// repeats reports whether two of the values are equal.
func repeats(values []any) bool {
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		seen[string(appendKey(nil, v))] = true
	}
	return len(seen) < len(values)
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
		for _, name := range slices.Sorted(maps.Keys(v)) {
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

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

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

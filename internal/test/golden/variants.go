// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package golden

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A Variant is JSON with one change.
type Variant struct {
	Name string // such as "arguments.int: null"
	Text string
}

// Variants returns an object with one of its values changed or missing, for each value:
// null, of another type, or empty.
func Variants(t *testing.T, object string) (all []Variant) {
	t.Helper()
	parse := func() (v any) {
		d := json.NewDecoder(strings.NewReader(object))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		return v
	}
	var visit func(path []string, v any)
	visit = func(path []string, v any) {
		if len(path) > 0 {
			for _, odd := range oddFor(v) {
				changed := parse()
				setAt(changed, path, odd.value)
				text, err := json.Marshal(changed)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, Variant{strings.Join(path, ".") + ": " + odd.name, string(text)})
			}
		}
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				visit(append(slices.Clone(path), name), v[name])
			}
		case []any:
			for i := range v {
				visit(append(slices.Clone(path), strconv.Itoa(i)), v[i])
			}
		}
	}
	visit(nil, parse())
	return all
}

type oddValue struct {
	name  string
	value any
}

// absent is a value that stands for a missing member.
type absent struct{}

// oddFor returns the values with which to replace a value.
func oddFor(v any) []oddValue {
	odd := []oddValue{{"absent", absent{}}, {"null", nil}}
	switch v.(type) {
	case string:
		return append(odd, oddValue{"1", json.Number("1")}, oddValue{`""`, ""})
	case json.Number:
		return append(odd, oddValue{`"x"`, "x"}, oddValue{"-1.5", json.Number("-1.5")})
	case []any:
		return append(odd, oddValue{"{}", map[string]any{}}, oddValue{"[]", []any{}})
	case map[string]any:
		return append(odd, oddValue{"[]", []any{}}, oddValue{"{}", map[string]any{}})
	}
	return append(odd, oddValue{`"x"`, "x"})
}

// setAt changes the value at a path.
func setAt(v any, path []string, value any) {
	last := path[len(path)-1]
	for _, step := range path[:len(path)-1] {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, _ := strconv.Atoi(step)
			v = at[i]
		}
	}
	switch at := v.(type) {
	case map[string]any:
		if at[last] = value; value == any(absent{}) {
			delete(at, last)
		}
	case []any:
		i, _ := strconv.Atoi(last)
		if at[i] = value; value == any(absent{}) {
			at[i] = json.Number("0") // an array has no absent elements
		}
	}
}

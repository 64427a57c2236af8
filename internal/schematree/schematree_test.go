// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package schematree_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/go-psi/psi/internal/schematree"
)

func TestWalk(t *testing.T) {
	var schema any
	err := json.Unmarshal([]byte(`{
		"properties": {"items": {"type": "string", "const": {"properties": {"no": {}}}}, "a/b": true},
		"items": [{}, false], "default": {"not": {}}
	}`), &schema)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	schematree.Walk(schema, "", func(pointer string, _ any) { got = append(got, pointer) })
	if want := []string{"", "/items/0", "/items/1", "/properties/a~1b", "/properties/items"}; !slices.Equal(got, want) {
		t.Errorf("visited %q, want %q", got, want)
	}
}

func TestDirect(t *testing.T) {
	var got []string
	visit := func(pointer string, _ any) { got = append(got, pointer) }
	schematree.Direct("anyOf", []any{true, map[string]any{"not": true}}, "/anyOf", visit)
	schematree.Direct("enum", []any{true}, "/enum", visit)
	if want := []string{"/anyOf/0", "/anyOf/1"}; !slices.Equal(got, want) {
		t.Errorf("visited %q, want %q", got, want)
	}
}

func TestPointers(t *testing.T) {
	tokens := []string{"$defs", "a/b~c", "0"}
	pointer := schematree.Join(tokens)
	if pointer != "/$defs/a~1b~0c/0" || !slices.Equal(schematree.Split(pointer), tokens) {
		t.Errorf("pointer %q, split %q", pointer, schematree.Split(pointer))
	}
	tree := map[string]any{"$defs": map[string]any{"a/b~c": []any{"x"}}}
	if v, ok := schematree.Lookup(tree, tokens); !ok || v != "x" {
		t.Errorf("looked up %v, %t", v, ok)
	}
	for _, missing := range [][]string{{"no"}, {"$defs", "a/b~c", "1"}, {"$defs", "a/b~c", "-1"}, {"$defs", "a/b~c", "0", "x"}} {
		if v, ok := schematree.Lookup(tree, missing); ok {
			t.Errorf("%q is %v", missing, v)
		}
	}
}

func TestLocalRef(t *testing.T) {
	for ref, want := range map[string]string{"#": "", "#/$defs/A": "/$defs/A", "#/$defs/a%20b": "/$defs/a b"} {
		if got, ok := schematree.LocalRef(ref); !ok || got != want {
			t.Errorf("%s is %q, %t", ref, got, ok)
		}
	}
	for _, ref := range []string{"", "other.json#/a", "#anchor", "#/%zz"} {
		if got, ok := schematree.LocalRef(ref); ok {
			t.Errorf("%s is %q", ref, got)
		}
	}
}

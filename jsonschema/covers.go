// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/schematree"
)

// CheckType returns an error if a value of type t cannot hold what the schema raw
// describes: if raw lists a property that has no field in t, gives a property a type that
// its field cannot hold, or does not allow a property that t requires. Parts of raw that
// combine schemas, for example with anyOf, are not compared.
func CheckType(raw []byte, t reflect.Type) error {
	own, err := ForType(t)
	if err != nil {
		return err
	}
	given, terr := readTree(raw, maxDepth, maxNodes)
	if terr != nil {
		return fmt.Errorf("jsonschema: schema %w", terr)
	}
	inferred, terr := readTree(own, maxDepth, maxInferNodes*10)
	if terr != nil {
		return fmt.Errorf("jsonschema: schema %w", terr)
	}
	c := comparison{given: given, own: inferred, typ: t, seen: map[[2]string]bool{}}
	return c.compare(nil, nil, "")
}

// A comparison compares a given schema with the schema of a type.
type comparison struct {
	given, own any
	typ        reflect.Type
	seen       map[[2]string]bool // pairs of pointers
}

// schemaAt follows references from pointer. It returns the schema and its location.
func schemaAt(document any, pointer []string) (map[string]any, []string) {
	const hops = 8 // bound on references
	for range hops {
		schema, _ := schematree.Lookup(document, pointer)
		obj, _ := schema.(map[string]any)
		ref, _ := obj["$ref"].(string)
		target, local := schematree.LocalRef(ref)
		if !local {
			return obj, pointer
		}
		pointer = schematree.Split(target)
	}
	return nil, pointer
}

// compare compares the schemas at two pointers. at is the location of the value.
func (c *comparison) compare(given, own []string, at string) error {
	from, given := schemaAt(c.given, given)
	to, own := schemaAt(c.own, own)
	pair := [2]string{schematree.Join(given), schematree.Join(own)}
	types := typesOf(to)
	if from == nil || c.seen[pair] || len(types) == 0 || len(types) >= everyType {
		return nil
	}
	c.seen[pair] = true
	for _, kind := range typesOf(from) {
		fits := kind == "null" || slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number")
		if !fits {
			return fmt.Errorf("%s has the type %s, but %v takes %s there", orRoot(at), kind, c.typ, typeList(types))
		}
	}
	below := func(pointer []string, keys ...string) []string { return append(slices.Clone(pointer), keys...) }
	if from["items"] != nil && to["items"] != nil {
		return c.compare(below(given, "items"), below(own, "items"), at+"/-")
	}
	known, _ := to["properties"].(map[string]any)
	listed, _ := from["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		into := below(own, "properties", name)
		if known[name] == nil {
			into = below(own, "additionalProperties")
		}
		if known[name] == nil && to["additionalProperties"] == false {
			names := slices.Sorted(maps.Keys(known))
			return fmt.Errorf("%s/%s has no field in %v%s", at, schematree.Escape(name), c.typ, nearest.Hint(name, names))
		}
		if err := c.compare(below(given, "properties", name), into, at+"/"+schematree.Escape(name)); err != nil {
			return err
		}
	}
	for _, name := range stringsOf(listOf(to["required"])) {
		if from["additionalProperties"] == false && listed[name] == nil {
			return fmt.Errorf("it leaves no way to set %s/%s of %v; add the property, or make the field optional with omitzero", at, schematree.Escape(name), c.typ)
		}
	}
	return nil
}

func orRoot(at string) string {
	if at == "" {
		return "the root"
	}
	return at
}

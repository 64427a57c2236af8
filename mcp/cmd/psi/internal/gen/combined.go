// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-psi/psi/internal/schematree"
)

// target returns what a schema refers to and its pointer, or false if it refers to nothing in
// the document.
func (r *reader) target(s *object) (target any, pointer string, ok bool) {
	if !s.has("$ref") {
		return nil, "", false
	}
	pointer, ok = schematree.LocalRef(s.text("$ref"))
	if !ok {
		return nil, "", false
	}
	target, ok = lookup(r.root, pointer)
	return target, pointer, ok
}

// combined returns the type of a schema with allOf that has no type itself. If the schemas
// that it combines are of one type other than object, it is that of the schema which says
// most: allOf then only adds a description, a default or limits.
func (r *reader) combined(s *object, pointer string, name typeName) goType {
	switch kind := r.kindOf(s, pointer); kind {
	case "object":
		if list := s.list("allOf"); len(list) == 1 && !s.has("required") {
			return r.typeOf(list[0], pointer+"/allOf/0", name)
		}
		return r.object(s, pointer, name)
	case unknownKind:
		return r.anyType("")
	case severalKinds:
		return r.anyType("It has one of several types; see the schema of the tool.")
	default:
		list := s.list("allOf")
		best, most := 0, -1
		isNullable := true
		for i, sub := range list {
			at := pointer + "/allOf/" + strconv.Itoa(i)
			given := r.kindOf(sub, at)
			if given == unknownKind {
				continue
			}
			isNullable = isNullable && r.allowsNull(sub)
			if says := r.says(sub); given == kind && says > most {
				best, most = i, says
			}
		}
		t := r.typeOf(list[best], pointer+"/allOf/"+strconv.Itoa(best), name)
		t.nullable = isNullable
		return t
	}
}

// A schema has one of these kinds, or that of its only type, without null.
const (
	unknownKind  = ""        // it does not restrict the type
	severalKinds = "several" // types, or types that contradict each other
)

// kindOf returns the type that a schema restricts values to, following references. A schema
// with properties is that of an object, and one with items that of an array.
func (r *reader) kindOf(v any, pointer string) string {
	if kind, ok := r.kinds[pointer]; ok {
		return kind
	}
	r.kinds[pointer] = unknownKind // if it contains itself
	s := asObject(v)
	if !r.g.spend(visitCost) {
		return unknownKind
	}
	kind := r.ownKind(s)
	for i, sub := range s.list("allOf") {
		kind = agreed(kind, r.kindOf(sub, pointer+"/allOf/"+strconv.Itoa(i)))
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		kind = agreed(kind, r.commonKind(s.list(keyword), pointer+"/"+keyword))
	}
	if target, at, ok := r.target(s); ok {
		kind = agreed(kind, r.kindOf(target, at))
	}
	r.kinds[pointer] = kind
	return kind
}

// ownKind returns the kind that the keywords of a schema say without other schemas.
func (r *reader) ownKind(s *object) string {
	types := slices.DeleteFunc(s.strings("type"), func(t string) bool { return t == "null" })
	switch {
	case len(types) == 1:
		return types[0]
	case len(types) > 1:
		return severalKinds
	case s.has("const"):
		return kindOfValue(s.values["const"])
	case s.has("enum"):
		return kindOfValues(s.list("enum"))
	case s.has("properties"):
		return "object"
	case s.has("items"):
		return "array"
	}
	return unknownKind
}

// kindOfValues returns the kind of values, which may include null.
func kindOfValues(values []any) string {
	kind := unknownKind
	for _, v := range values {
		switch own := kindOfValue(v); {
		case v == nil || own == kind:
		case kind == unknownKind:
			kind = own
		case agreed(own, kind) == "integer":
			kind = "number"
		default:
			return severalKinds
		}
	}
	return kind
}

func kindOfValue(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if isInteger(v) {
			return "integer"
		}
		return "number"
	}
	return severalKinds
}

// agreed returns the kind of values that are of both kinds.
func agreed(a, b string) string {
	switch {
	case a == b || b == unknownKind:
		return a
	case a == unknownKind:
		return b
	case a == "integer" && b == "number" || a == "number" && b == "integer":
		return "integer"
	}
	return severalKinds
}

// commonKind returns the kind of a value that is of one of several schemas.
func (r *reader) commonKind(list []any, pointer string) string {
	common := unknownKind
	for i, sub := range list {
		if asObject(sub).text("type") == "null" {
			continue
		}
		kind := r.kindOf(sub, pointer+"/"+strconv.Itoa(i))
		if kind == unknownKind {
			return unknownKind // such as alternatives that only require members
		}
		if common != unknownKind && common != kind {
			return severalKinds
		}
		common = kind
	}
	return common
}

// says ranks schemas of the same kind by how much their Go types say.
func (r *reader) says(v any) int {
	s := r.resolved(v)
	switch {
	case s.has("enum") || s.has("const"):
		return 3
	case s.has("items") || s.has("allOf") || s.has("anyOf") || s.has("oneOf"):
		return 2
	case s.has("format") || s.text("type") == "integer":
		return 1
	}
	return 0
}

// allowsNull reports whether a schema with a type lists null.
func (r *reader) allowsNull(v any) bool {
	s := r.resolved(v)
	isNull := func(sub any) bool { return asObject(sub).text("type") == "null" }
	return slices.Contains(s.strings("type"), "null") || !s.has("type") && slices.Contains(s.list("enum"), nil) ||
		slices.ContainsFunc(s.list("anyOf"), isNull) || slices.ContainsFunc(s.list("oneOf"), isNull)
}

// resolved returns the schema v, or what it refers to.
func (r *reader) resolved(v any) *object {
	const hops = 8 // a bound on references
	s := asObject(v)
	for range hops {
		target, _, ok := r.target(s)
		if !ok {
			break
		}
		s = asObject(target)
	}
	return s
}

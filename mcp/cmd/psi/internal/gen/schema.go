// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/schematree"
	"github.com/go-psi/psi/jsonschema"
)

// A goType is a Go type for the values of a schema.
type goType struct {
	text     string      // such as "[]string"
	strct    *structType // if it is a struct, by value
	hasNil   bool        // the zero value is nil, which omitzero omits
	nullable bool        // null is allowed
	note     string      // what a comment should add to the type
}

// optional returns the text of a type that can represent a missing value.
func (t goType) optional() string {
	if t.hasNil {
		return t.text
	}
	return "*" + t.text
}

// element returns the text of the type as the element of a slice or a map.
func (t goType) element() string {
	if t.nullable {
		return t.optional()
	}
	return t.text
}

// A reader creates the types of one schema.
type reader struct {
	g        *generator
	root     any
	tool     string // the tool's Go name, with which the names of types begin
	suffix   string // follows tool in the names of types that are not in $defs
	origin   string // for comments, such as: the input of the tool "add"
	isOutput bool
	made     map[string]goType // structs and enums, by pointer
	kinds    map[string]string // see kindOf, by pointer
	visiting map[string]bool   // pointers of schemas being expanded in place
}

// newReader returns a reader of the schema in raw, or nil if raw is not a schema.
func (g *generator) newReader(raw json.RawMessage, tool, suffix, origin string) *reader {
	if _, err := jsonschema.Compile(raw, nil); err != nil { // also limits its depth and size
		return nil
	}
	return &reader{g: g, root: parse(raw), tool: tool, suffix: suffix, origin: origin, isOutput: suffix == outputSuffix, made: map[string]goType{}, kinds: map[string]string{}, visiting: map[string]bool{}}
}

// Suffixes that follow the name of the tool in the names of types.
const (
	inputSuffix  = "Input"
	outputSuffix = "Output"
)

// A typeName is a name for a type that may have to be declared. If short is taken, long is
// used, which contains the names of all properties on the path.
type typeName struct{ short, long string }

func newTypeName(name string) typeName { return typeName{name, name} }

func (n typeName) with(suffix string) typeName { return typeName{n.short + suffix, n.long + suffix} }

// takeType reserves a name for a type that is declared.
func (g *generator) takeType(n typeName) string {
	if g.names.isFree(n.short) {
		return g.names.take(n.short)
	}
	return g.names.take(n.long)
}

// anyType returns the type of values about which too little is known. Callers can pass any
// value, and get the JSON that the server sent.
func (r *reader) anyType(note string) goType {
	if r.isOutput {
		return goType{text: "json.RawMessage", hasNil: true, note: note}
	}
	return goType{text: "any", hasNil: true, note: note}
}

// typeOf returns the type of the schema v, found at pointer. Name is used if the type has
// to be declared.
func (r *reader) typeOf(v any, pointer string, name typeName) goType {
	if t, ok := r.made[pointer]; ok {
		return t
	}
	if r.visiting[pointer] || !r.g.spend(visitCost) { // it contains itself, but neither a struct nor an enum
		return r.anyType("")
	}
	r.visiting[pointer] = true
	defer delete(r.visiting, pointer)
	t := r.newType(v, pointer, name)
	if _, ok := r.made[pointer]; ok {
		r.made[pointer] = t // whether it is nullable is known only after its fields
	}
	return t
}

// newType returns the type of a schema seen for the first time.
func (r *reader) newType(v any, pointer string, name typeName) goType {
	s, ok := v.(*object)
	switch {
	case !ok:
		return r.anyType("")
	case s.has("$ref"):
		return r.reference(s)
	case s.has("enum") || s.has("const"):
		return r.enum(s, pointer, name)
	}
	types := s.strings("type")
	nullable := slices.Contains(types, "null")
	types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
	var t goType
	switch {
	case len(types) == 1:
		t = r.typed(types[0], s, pointer, name)
	case len(types) > 1:
		t = r.anyType("It is of one of the types " + strings.Join(types, ", ") + ".")
	case s.has("anyOf"):
		t = r.alternatives(s, "anyOf", pointer, name)
	case s.has("oneOf"):
		t = r.alternatives(s, "oneOf", pointer, name)
	case s.has("properties"):
		t = r.object(s, pointer, name)
	case s.has("allOf"):
		t = r.combined(s, pointer, name)
	case s.has("items"):
		t = r.typed("array", s, pointer, name)
	default:
		t = r.anyType("")
	}
	t.nullable = t.nullable || nullable
	return t
}

// typed returns the type of a schema with one type.
func (r *reader) typed(typ string, s *object, pointer string, name typeName) goType {
	switch typ {
	case "string":
		return r.stringType(s)
	case "integer":
		return goType{text: "int64"}
	case "number":
		return goType{text: "float64"}
	case "boolean":
		return goType{text: "bool"}
	case "array":
		return goType{text: "[]" + r.items(s, pointer, name).element(), hasNil: true}
	case "object":
		return r.object(s, pointer, name)
	}
	return r.anyType("")
}

// stringType returns the type of a string. Arguments get types that always encode in the
// required format. Output is always a string, because the server's values may not have the
// format. Types that fail on some valid results, such as time.Time for a format that may be
// only an annotation, are used for arguments only.
func (r *reader) stringType(s *object) goType {
	format, pattern := s.text("format"), s.has("pattern")
	switch {
	case r.isOutput || pattern:
	case format == "date-time":
		return goType{text: "time.Time"}
	case s.text("contentEncoding") == "base64":
		return goType{text: "[]byte", hasNil: true}
	}
	return goType{text: "string"}
}

// items returns the type of the elements of an array.
func (r *reader) items(s *object, pointer string, name typeName) goType {
	_, isTuple := s.values["items"].([]any)
	if isTuple || s.has("prefixItems") || !s.has("items") {
		return r.anyType("")
	}
	return r.typeOf(s.values["items"], pointer+"/items", name.with("Item"))
}

// reference returns the type of a schema that refers to another schema.
func (r *reader) reference(s *object) goType {
	target, pointer, ok := r.target(s)
	if !ok {
		return r.anyType("")
	}
	name := ""
	if tokens := schematree.Split(pointer); len(tokens) > 0 {
		name = tokens[len(tokens)-1]
	}
	return r.typeOf(target, pointer, newTypeName(r.tool+exported(name)))
}

// alternatives returns the type of a schema that combines others: a nullable type, an enum
// with descriptions, or any type.
func (r *reader) alternatives(s *object, keyword, pointer string, name typeName) goType {
	list := s.list(keyword)
	var constants []any
	only, count, nullable := 0, 0, false
	for i, sub := range list {
		obj := asObject(sub)
		if obj.text("type") == "null" {
			nullable = true
			continue
		}
		only = i
		count++
		if value, ok := obj.values["const"]; ok {
			constants = append(constants, value)
		}
	}
	if len(constants) > 1 && len(constants) == count {
		t := r.enumOf(constants, s, pointer, name)
		t.nullable = t.nullable || nullable
		return t
	}
	if count != 1 || s.has("properties") {
		return r.anyType("It has one of several types; see the schema of the tool.")
	}
	t := r.typeOf(list[only], pointer+"/"+keyword+"/"+strconv.Itoa(only), name)
	t.nullable = t.nullable || nullable
	return t
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	jsonv1 "encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	invopop "github.com/invopop/jsonschema"
	orderedmap "github.com/pb33f/ordered-map/v2"
)

// anyTypes are the types of the node that allows every value. A node without a
// type is refused by some clients, so the list is spelled out.
const anyTypes = `["object","array","string","number","boolean","null"]`

type definition struct {
	name   string
	schema *invopop.Schema
}

// A schemaWriter writes schemas as compact JSON: what the schema is about
// first, properties in the order of the struct, maps sorted, nothing escaped that
// need not be.
type schemaWriter struct {
	buf   []byte
	notes notes
	defs  []definition // written at the end of the first schema
	err   error
}

// keyword is one field of invopop's Schema.
type keyword struct {
	name  string
	index int
}

// keywords are the fields of invopop's Schema in the order to write them.
var keywords = sync.OnceValue(func() []keyword {
	first := []string{
		"$ref", "title", "description", "type", "anyOf", "oneOf", "allOf", "enum", "const",
		"properties", "required", "additionalProperties", "items", "minItems", "maxItems",
		"format", "pattern", "minLength", "maxLength", "minimum", "exclusiveMinimum",
	}
	t := reflect.TypeFor[invopop.Schema]()
	var list []keyword
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		switch name {
		case "", "-", "$schema", "$id", "$defs":
			continue
		}
		list = append(list, keyword{name, i})
	}
	rank := func(k keyword) int {
		if i := slices.Index(first, k.name); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(list, func(a, b keyword) int { return rank(a) - rank(b) })
	return list
})

// schema writes s with what its note adds.
func (w *schemaWriter) schema(s *invopop.Schema) {
	n := w.notes[s]
	if isBool, value := boolean(s); isBool && !n.null {
		w.value(value)
		return
	}
	if n.null && !n.anyValue && needsAnyOf(s, n) {
		w.orNull(s, n)
		return
	}
	defs := w.defs
	w.defs = nil
	w.open()
	w.body(s, n)
	if len(defs) > 0 {
		w.name("$defs")
		w.open()
		for _, d := range defs {
			w.name(d.name)
			w.schema(d.schema)
		}
		w.close()
	}
	w.close()
}

// boolean reports whether s is one of the schemas true and false.
func boolean(s *invopop.Schema) (isBool, value bool) {
	b := reflect.ValueOf(s).Elem().FieldByName("boolean")
	if b.IsNil() {
		return false, false
	}
	return true, b.Elem().Bool()
}

// needsAnyOf reports whether adding "null" to the type of s would not be enough
// to allow null, or would put it into an enum, which some clients refuse.
func needsAnyOf(s *invopop.Schema, n note) bool {
	return s.Type == "" || s.Enum != nil || s.Const != nil || n.raw != nil ||
		s.AnyOf != nil || s.OneOf != nil || s.AllOf != nil || s.Not != nil || s.If != nil
}

// orNull writes the choice between s and null; what describes the value stays on
// the outside.
func (w *schemaWriter) orNull(s *invopop.Schema, n note) {
	inner := *s
	inner.Title, inner.Description, inner.Default = "", "", nil
	w.open()
	w.text("title", s.Title)
	w.text("description", s.Description)
	w.name("anyOf")
	w.buf = append(w.buf, '[')
	w.open()
	n.null = false
	w.body(&inner, n)
	w.close()
	w.buf = append(w.buf, `,{"type":"null"}]`...)
	if s.Default != nil {
		w.name("default")
		w.value(s.Default)
	}
	w.close()
}

// body writes the members of s.
func (w *schemaWriter) body(s *invopop.Schema, n note) {
	taken := w.raw(n.raw)
	v := reflect.ValueOf(s).Elem()
	for _, k := range keywords() {
		f := v.Field(k.index)
		switch {
		case taken[k.name]:
		case k.name == "type" && n.anyValue && untyped(s):
			w.name("type")
			w.buf = append(w.buf, anyTypes+`,"properties":{},"items":{}`...)
		case f.IsZero():
		case k.name == "type" && n.null:
			w.name("type")
			w.value([]string{s.Type, "null"})
		default:
			w.keyword(k.name, f.Interface())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Extras)) {
		w.name(name)
		w.value(s.Extras[name])
	}
}

// untyped reports whether tags left the any value s as it was.
func untyped(s *invopop.Schema) bool {
	return s.Type == "" && s.Ref == "" && s.AnyOf == nil && s.OneOf == nil && s.AllOf == nil
}

// raw writes the members of a schema that a type supplied, and returns their
// names. A boolean schema becomes its object form, to which tags can add.
func (w *schemaWriter) raw(schema jsonv1.RawMessage) map[string]bool {
	switch string(schema) {
	case "", "true":
		return nil
	case "false":
		schema = jsonv1.RawMessage(`{"not":{}}`)
	}
	members, err := readMembers(jsontext.Value(schema))
	if err != nil && w.err == nil {
		w.err = err
	}
	taken := make(map[string]bool, len(members))
	for _, m := range members {
		taken[m.name] = true
		w.buf = appendMember(w.buf, m.name, m.value)
	}
	return taken
}

func (w *schemaWriter) keyword(name string, value any) {
	switch v := value.(type) {
	case *invopop.Schema:
		w.name(name)
		w.schema(v)
	case []*invopop.Schema:
		w.name(name)
		w.list(v)
	case map[string]*invopop.Schema:
		w.name(name)
		w.open()
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.name(key)
			w.schema(v[key])
		}
		w.close()
	case *orderedmap.OrderedMap[string, *invopop.Schema]:
		w.name(name)
		w.open()
		for pair := v.Oldest(); pair != nil; pair = pair.Next() {
			w.name(pair.Key)
			w.schema(pair.Value)
		}
		w.close()
	case jsonv1.Number:
		w.name(name)
		if !jsontext.Value(v).IsValid() && w.err == nil {
			w.err = fmt.Errorf("%s in a tag is %q, which is not a number in JSON", name, v)
		}
		w.buf = append(w.buf, v...)
	default:
		w.name(name)
		w.value(value)
	}
}

func (w *schemaWriter) list(schemas []*invopop.Schema) {
	w.buf = append(w.buf, '[')
	for i, s := range schemas {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.schema(s)
	}
	w.buf = append(w.buf, ']')
}

func (w *schemaWriter) open()  { w.buf = append(w.buf, '{') }
func (w *schemaWriter) close() { w.buf = append(w.buf, '}') }

func (w *schemaWriter) name(name string) {
	w.buf = appendMember(w.buf, name, nil)
}

func (w *schemaWriter) text(name, value string) {
	if value != "" {
		w.name(name)
		w.value(value)
	}
}

func (w *schemaWriter) value(v any) {
	b, err := marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.buf = append(w.buf, b...)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	jsonv1 "encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	invopop "github.com/invopop/jsonschema"
)

// expandStruct returns the schema of struct type t. Which fields there are, and
// of what type, follows the JSON package; what their tags add is invopop's doing.
func (in *inferrer) expandStruct(t reflect.Type, p path) (*invopop.Schema, error) {
	if err := json.Unmarshal([]byte("{}"), reflect.New(t).Interface()); err != nil {
		return nil, p.errorf("%v", cause(err))
	}
	fields, rest := jsonFields(t)
	props := make([]*invopop.Schema, len(fields))
	for i := range fields {
		s, err := in.property(fields[i], p)
		if err != nil {
			return nil, err
		}
		props[i] = s
	}
	s := plainObject(fields, props)
	if slices.ContainsFunc(fields, (*field).hasSchemaTags) {
		s = in.applyTags(fields, props)
	}
	if rest != nil {
		more, err := in.fallback(rest, p)
		if err != nil {
			return nil, err
		}
		s.AdditionalProperties = more
	}
	return s, nil
}

// cause drops the position and Go type with which the JSON package wraps the
// reason that it refuses a struct.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

func (in *inferrer) property(f *field, p path) (*invopop.Schema, error) {
	p = p.field(f.Name)
	if f.quoted {
		return in.quotedNumber(f, p)
	}
	s, null, err := in.schema(f.Type, p)
	if err != nil {
		return nil, err
	}
	if null && f.writesNull() || nullableTag(f) {
		in.notes.setNull(s)
	}
	return s, nil
}

// quotedNumber is the schema of a number written as a string.
func (in *inferrer) quotedNumber(f *field, p path) (*invopop.Schema, error) {
	t := indirect(f.Type)
	s := &invopop.Schema{Type: "string"}
	switch {
	case implements(t, jsonMethods) || implements(t, textWriters) || t == durationType:
		return nil, p.errorf("the string option is for numbers")
	case isInteger(t):
		s.Pattern = `^-?(0|[1-9][0-9]*)$`
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		s.Pattern = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`
	default:
		return nil, p.errorf("the string option is for numbers")
	}
	if f.writesNull() {
		in.notes.setNull(s)
	}
	return s, nil
}

// fallback is the schema of the members that an embedded map or jsontext.Value
// collects.
func (in *inferrer) fallback(f *field, p path) (*invopop.Schema, error) {
	if f.isRawObject() {
		return invopop.TrueSchema, nil
	}
	s, err := in.element(indirect(f.Type).Elem(), p.field(f.Name).elem())
	if err == nil && in.notes[s].anyValue {
		s = invopop.TrueSchema
	}
	return s, err
}

// plainObject builds the object of the given properties, as applyTags does where
// there are no tags, but several times faster.
func plainObject(fields []*field, props []*invopop.Schema) *invopop.Schema {
	s := &invopop.Schema{Type: "object", Properties: invopop.NewProperties(), AdditionalProperties: invopop.FalseSchema}
	for i, f := range fields {
		s.Properties.Set(f.name, props[i])
		if !f.optional() {
			s.Required = append(s.Required, f.name)
		}
	}
	return s
}

// schemaTags are the tags that invopop reads, besides that of the JSON package.
var schemaTags = []string{"jsonschema", "jsonschema_description", "jsonschema_extras"}

func (f *field) hasSchemaTags() bool {
	return slices.ContainsFunc(schemaTags, func(key string) bool { return f.Tag.Get(key) != "" })
}

// applyTags builds the object of the given properties and lets invopop read the
// jsonschema tags onto them.
//
// invopop has its own idea of which fields a struct has and what their types
// mean. So it is shown a stand-in: a struct with one plain field for each of
// ours, whose type carries nothing but its number, for which the Mapper answers
// with the schema that is already there.
func (in *inferrer) applyTags(fields []*field, props []*invopop.Schema) *invopop.Schema {
	standIn := make([]reflect.StructField, len(fields))
	names := make(map[string]string, len(fields))
	before := make([]invopop.Schema, len(fields))
	for i := range fields {
		name := "F" + strconv.Itoa(i)
		names[name] = fields[i].name
		before[i] = *props[i]
		props[i].Enum = nil // a tag's values replace the type's
		standIn[i] = reflect.StructField{
			Name: name,
			Type: reflect.ArrayOf(i, reflect.TypeFor[struct{}]()),
			Tag:  standInTag(name, fields[i]),
		}
	}
	r := invopop.Reflector{
		Anonymous:      true,
		DoNotReference: true,
		KeyNamer:       func(name string) string { return names[name] },
		Mapper: func(t reflect.Type) *invopop.Schema {
			if t.Kind() == reflect.Array {
				return props[t.Len()]
			}
			return nil
		},
	}
	s := r.ReflectFromType(reflect.StructOf(standIn))
	s.Version = ""
	for i, p := range props {
		mend(p, &before[i])
	}
	return s
}

// standInTag keeps the schema tags of f. Of the json tag there remains only
// whether the field is optional; of the jsonschema tag everything but
// "nullable", which psi writes in its own way.
func standInTag(name string, f *field) reflect.StructTag {
	if f.optional() {
		name += ",omitempty"
	}
	var tag strings.Builder
	tag.WriteString("json:" + strconv.Quote(name))
	for _, key := range schemaTags {
		value := f.Tag.Get(key)
		if key == "jsonschema" {
			value = withoutNullable(value)
		}
		if value != "" {
			tag.WriteString(" " + key + ":" + strconv.Quote(value))
		}
	}
	return reflect.StructTag(tag.String())
}

func nullableTag(f *field) bool {
	tag := f.Tag.Get("jsonschema")
	return withoutNullable(tag) != tag
}

func withoutNullable(tag string) string {
	words := strings.Split(tag, ",")
	kept := make([]string, 0, len(words))
	for i, w := range words {
		if w != "nullable" || i > 0 && strings.HasSuffix(words[i-1], `\`) { // the comma before it is part of a text
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, ",")
}

// mend undoes what invopop does to a schema besides reading tags: it forgets
// the description the type gave itself and takes every default of a list for a
// string.
func mend(s, before *invopop.Schema) {
	if s.Description == "" {
		s.Description = before.Description
	}
	if s.Enum == nil {
		s.Enum = before.Enum
	}
	list, ok := s.Default.([]any)
	if !ok || s.Items == nil {
		return
	}
	switch s.Items.Type {
	case "integer", "number", "boolean":
		for i, v := range list {
			if text, ok := v.(string); ok && jsonv1.Valid([]byte(text)) {
				list[i] = jsonv1.RawMessage(text)
			}
		}
	}
}

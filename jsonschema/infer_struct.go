// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"context"
	jsonv1 "encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	invopop "github.com/invopop/jsonschema"

	"github.com/go-psi/psi/internal/strictjson"
)

// object is the type that invopop reflects instead of a struct. It has no fields and no
// methods. Its fields are supplied by [structFields], because the JSON package and invopop
// differ in how they embed and shadow fields, and because invopop must not call methods
// that a struct only inherits from an embedded field.
type object struct{}

// noTag is a struct tag that no field has. It makes invopop use the names of the fields as given.
const noTag = "github.com/go-psi/psi/jsonschema"

// expandStruct returns the schema of struct type t. The JSON package determines the fields;
// invopop applies their tags.
func (in *inferrer) expandStruct(t reflect.Type, p path) (*invopop.Schema, error) {
	if err := json.Unmarshal([]byte("{}"), reflect.New(t).Interface()); err != nil {
		return nil, p.errorf("%v", cause(err))
	}
	fields, rest := jsonFields(t)
	s, err := in.reflectFields(fields, p)
	if err != nil {
		return nil, err
	}
	if rest != nil {
		s.AdditionalProperties, err = in.restSchema(rest, p)
	}
	return s, err
}

// cause returns the reason why the JSON package rejected a struct, without its position and
// Go type.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// reflectFields returns the schema of an object with the given fields. invopop reflects a
// struct made of these fields, not the user's: the rules for embedding differ, and methods
// that a struct has only through promotion must not be called.
func (in *inferrer) reflectFields(fields []*field, p path) (*invopop.Schema, error) {
	for _, f := range fields {
		if base(f.Type).Kind() == reflect.Pointer { // invopop would never return
			return nil, p.field(f.Name).errorf("%s", errSelfPointer)
		}
		var err error
		if f.about, err = parseTag(f.Tag); err != nil {
			return nil, p.field(f.Name).errorf("%v", err)
		}
	}
	var failed error
	untagged := map[reflect.Type]invopop.Schema{} // schemas of types, without tags
	r := invopop.Reflector{
		Anonymous:                  true,
		DoNotReference:             true,
		RequiredFromJSONSchemaTags: true,
		FieldNameTag:               noTag,
		AdditionalFields:           func(reflect.Type) []reflect.StructField { return structFields(fields) },
		Mapper: func(t reflect.Type) *invopop.Schema {
			switch {
			case t == reflect.TypeFor[object]():
				return nil
			case failed != nil:
				return &invopop.Schema{}
			}
			s, err := in.schema(t, p.field(nameOfType(fields, t)))
			if err != nil {
				failed = err
				return &invopop.Schema{}
			}
			untagged[t] = *s
			return s
		},
	}
	s := r.ReflectFromType(reflect.TypeFor[object]())
	if failed != nil {
		return nil, failed
	}
	s.Version = ""
	return s, in.completeProperties(s, fields, untagged, p)
}

// structFields returns the fields for invopop, including promoted ones, with their JSON names.
func structFields(fields []*field) []reflect.StructField {
	list := make([]reflect.StructField, len(fields))
	for i, f := range fields {
		list[i] = reflect.StructField{Name: f.name, Type: f.Type, Tag: f.about.structTag(f.Tag)}
	}
	return list
}

// nameOfType returns the Go name of the first field of type t.
func nameOfType(fields []*field, t reflect.Type) string {
	i := slices.IndexFunc(fields, func(f *field) bool { return base(f.Type) == t })
	if i < 0 {
		return t.String() // a type with a JSONSchemaAlias method
	}
	return fields[i].Name
}

// completeProperties completes the schemas of the fields and the list of required properties.
func (in *inferrer) completeProperties(s *invopop.Schema, fields []*field, untagged map[reflect.Type]invopop.Schema, p path) error {
	for _, f := range fields {
		property, ok := s.Properties.Get(f.name)
		if !ok { // tagged "-"
			continue
		}
		property, err := in.completeProperty(f, property, untagged[base(f.Type)], p.field(f.Name))
		if err != nil {
			return err
		}
		s.Properties.Set(f.name, property)
		switch optional := hasDefault(property); {
		case f.about.required && optional:
			return p.field(f.Name).errorf("it is required and has a default, which would never be used; remove one of the two")
		case f.about.required && f.omits:
			return p.field(f.Name).errorf("it is required and has omitempty or omitzero, so that it would be written without it; remove one of the two")
		case f.about.required, !optional && !f.optional():
			s.Required = append(s.Required, f.name)
		}
	}
	return nil
}

// completeProperty completes the schema of one field. untagged is the schema of its type,
// without the tags.
func (in *inferrer) completeProperty(f *field, s *invopop.Schema, untagged invopop.Schema, p path) (*invopop.Schema, error) {
	if err := f.about.check(&untagged, f.quoted); err != nil {
		return nil, p.errorf("%v", err)
	}
	if strings.Contains(f.about.structTag(f.Tag).Get("jsonschema")+",", ",nullable,") {
		s = s.OneOf[0] // invopop mistook the end of a value with a comma for the flag
	}
	if s.Description == "" {
		s.Description = untagged.Description
	}
	if n := len(untagged.Enum); n < len(s.Enum) {
		s.Enum = s.Enum[n:] // the values of the tag replace those of the type
	}
	if f.quoted {
		if err := quoteNumber(f.Type, s, p); err != nil {
			return nil, err
		}
	}
	parseDefaults(s)
	s = in.complete(f.Type, s)
	if err := checkDefault(f, s); err != nil {
		return nil, p.errorf("%v", err)
	}
	if f.about.nullable || f.writesNull() && (!in.isInput || f.about.required) {
		s = orNull(s)
	}
	return s, nil
}

// hasDefault reports whether s has a default, from a tag or from the type. A default makes a
// field optional: on a required field it could never be used.
func hasDefault(s *invopop.Schema) bool { return s.Default != nil || s.Extras["default"] != nil }

// checkDefault returns an error if the default in the tag of a field does not match the
// schema of the field, or cannot be decoded into the field.
func checkDefault(f *field, s *invopop.Schema) error {
	if !f.about.has("default") {
		return nil
	}
	raw, err := jsonv1.Marshal(s)
	if err != nil {
		return err
	}
	value, err := jsonv1.Marshal(s.Default)
	if err != nil {
		return err
	}
	schema, err := Compile(raw, &Options{AssertFormats: true})
	if err != nil {
		return err
	}
	if err := schema.Validate(context.Background(), value); err != nil {
		return fmt.Errorf("the default in the jsonschema tag does not fit: %w", err)
	}
	if text, ok := s.Default.(string); ok && f.quoted { // the schema requires a number in it
		value = []byte(text)
	}
	if err := strictjson.UnmarshalValue(value, reflect.New(f.Type).Interface()); err != nil {
		return fmt.Errorf("the default in the jsonschema tag does not fit: %w", cause(err))
	}
	return nil
}

// quoteNumber turns s, the schema of a number, into the schema of a number encoded as a string.
func quoteNumber(t reflect.Type, s *invopop.Schema, p path) error {
	t = base(t)
	pattern := ""
	switch {
	case implements(t, jsonMethods) || implements(t, textWriters):
	case isInteger(t):
		pattern = `^-?(0|[1-9][0-9]*)$`
	case isFloat(t):
		pattern = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`
	}
	if pattern == "" {
		return p.errorf("the string option is for numbers")
	}
	s.Type, s.Minimum, s.Maximum = "string", "", ""
	s.Pattern = cmp.Or(s.Pattern, pattern)
	return nil
}

// parseDefaults converts the default of a list, which invopop leaves as strings, to the
// type of the items.
func parseDefaults(s *invopop.Schema) {
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

// restSchema returns the schema of the members in the embedded fallback.
func (in *inferrer) restSchema(f *field, p path) (*invopop.Schema, error) {
	if f.isRawObject() {
		return invopop.TrueSchema, nil
	}
	t := base(f.Type)
	s, err := in.schema(t.Elem(), p.field(f.Name).elem())
	if err != nil || allowsEverything(s) {
		return s, err
	}
	return in.completeElement(t, s), nil
}

// anyTypes is the "type" of a schema that allows every value. Some clients reject a schema
// without a type.
var anyTypes = []string{"object", "array", "string", "number", "boolean", "null"}

// complete finishes s, the schema of t: it adds null for nil elements, and the types of a
// schema that allows everything. This happens after invopop has applied tags, because
// invopop needs a single "type". It is called once for each schema.
func (in *inferrer) complete(t reflect.Type, s *invopop.Schema) *invopop.Schema {
	switch t = base(t); t.Kind() {
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			s.Items = in.completeElement(t, s.Items)
		}
	case reflect.Map:
		if more := s.AdditionalProperties; more != nil && !allowsEverything(more) {
			s.AdditionalProperties = in.completeElement(t, more)
		}
	}
	if allowsEverything(s) {
		s.Extras = map[string]any{"type": anyTypes, "properties": struct{}{}, "items": struct{}{}}
	}
	dropOverridden(s)
	return s
}

// completeElement completes s, the schema of the elements of a list or map of type t. Nil
// pointers are encoded as null there. In an input schema, null is not listed where a member
// of a map is optional, and where the elements are structs, which pointers refer to out of
// habit.
func (in *inferrer) completeElement(t reflect.Type, s *invopop.Schema) *invopop.Schema {
	s = in.complete(t.Elem(), s)
	if t.Elem().Kind() != reflect.Pointer || in.isInput && (t.Kind() == reflect.Map || base(t.Elem()).Kind() == reflect.Struct) {
		return s
	}
	return orNull(s)
}

// allowsEverything reports whether s, apart from annotations, is the schema of an
// interface or of a type with its own JSON methods.
func allowsEverything(s *invopop.Schema) bool {
	return s.Type == "" && s.Ref == "" && s.AnyOf == nil && s.OneOf == nil && s.AllOf == nil && len(s.Extras) == 0
}

// dropOverridden clears the keywords of s that are also in Extras, so that none is written twice.
func dropOverridden(s *invopop.Schema) {
	if len(s.Extras) == 0 {
		return
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if _, ok := s.Extras[name]; ok && v.Type().Field(i).IsExported() {
			v.Field(i).SetZero()
		}
	}
}

// orNull returns a schema that allows null in addition to what s allows. It adds "null" to
// the type of s if that suffices, but not next to an enum, because some clients reject null there.
func orNull(s *invopop.Schema) *invopop.Schema {
	if _, several := s.Extras["type"].([]string); several {
		return s // it allows every value already
	}
	if s.Type != "" && s.Enum == nil && s.Const == nil && s.AnyOf == nil &&
		s.OneOf == nil && s.AllOf == nil && s.Not == nil && s.If == nil {
		types := map[string]any{"type": []string{s.Type, "null"}}
		maps.Copy(types, s.Extras)
		s.Type, s.Extras = "", types
		return s
	}
	outer := &invopop.Schema{Title: s.Title, Description: s.Description, Default: s.Default}
	s.Title, s.Description, s.Default = "", "", nil
	outer.AnyOf = []*invopop.Schema{s, {Type: "null"}}
	return outer
}

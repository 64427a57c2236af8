// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"bytes"
	jsonv1 "encoding/json"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	invopop "github.com/invopop/jsonschema"
)

// The methods by which a type supplies or changes its schema.
type (
	rawSupplier    interface{ JSONSchema() jsonv1.RawMessage }
	schemaSupplier interface{ JSONSchema() *invopop.Schema }
	extender       interface{ JSONSchemaExtend(s *invopop.Schema) }
)

// suppliedSchema returns the schema of t's own JSONSchema method, or nil if it has none.
func (in *inferrer) suppliedSchema(t reflect.Type, p path) (*invopop.Schema, error) {
	var raw []byte
	var err error
	if v, ok := own(t, func(v rawSupplier) any { return v.JSONSchema() }); ok {
		raw = v.JSONSchema()
	} else if v, ok := own(t, func(v schemaSupplier) any { return v.JSONSchema() }); ok {
		raw, err = jsonv1.Marshal(v.JSONSchema())
	} else {
		return nil, nil
	}
	if err != nil {
		return nil, p.errorf("JSONSchema: %v", err)
	}
	s, err := parseSupplied(raw)
	if err != nil {
		return nil, p.errorf("JSONSchema: %v", err)
	}
	if len(in.open) > 0 && bytes.Contains(raw, []byte(`"$ref"`)) { // it would point into the wrong document
		return nil, p.errorf("JSONSchema: a schema used inside another must not contain $ref")
	}
	return s, nil
}

// parseSupplied returns raw as a schema. All members are Extras, which keeps them
// unchanged. Type is also set, because it tells invopop which tags apply.
func parseSupplied(raw []byte) (*invopop.Schema, error) {
	switch jsontext.Value(raw).Kind() {
	case 't':
		return &invopop.Schema{}, nil
	case 'f':
		return &invopop.Schema{Extras: map[string]any{"not": struct{}{}}}, nil
	case '{':
	default:
		return nil, errors.New("a schema is a JSON object or a boolean")
	}
	members := map[string]jsonv1.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	s := &invopop.Schema{Extras: map[string]any{}}
	for name, value := range members {
		if name != "$schema" && name != "$id" {
			s.Extras[name] = value
		}
	}
	_ = json.Unmarshal(members["type"], &s.Type) // stays empty for a list of types
	return s, nil
}

// adjust applies the methods of t to the schema that was inferred for it.
func adjust(t reflect.Type, s *invopop.Schema) {
	if e, ok := own(t, func(v Enumer) any { return v.JSONSchemaEnum() }); ok {
		s.Enum = e.JSONSchemaEnum()
	}
	effect := func(v extender) any {
		s := invopop.Schema{Properties: invopop.NewProperties()}
		v.JSONSchemaExtend(&s)
		return s
	}
	if e, ok := own(t, effect); ok {
		e.JSONSchemaExtend(s)
	}
}

// own returns a value of type *t as an M. It returns false if t has no such method, or if t
// is a struct that only inherits the method from an embedded field: the method then
// describes the field, not the struct. But it returns true if t also has JSON or text
// methods, because t then has the JSON form of the field.
//
// Reflection cannot distinguish a promoted method from one that t declares. But a promoted
// method returns the same result as the method of the field.
func own[M any](t reflect.Type, result func(M) any) (m M, ok bool) {
	v := instance(t, 0)
	if m, ok = reflect.TypeAssert[M](v); !ok {
		return m, false
	}
	if t.Kind() != reflect.Struct || implements(t, jsonMethods) || implements(t, textWriters) {
		return m, true
	}
	for i := range t.NumField() {
		f := t.Field(i)
		inner := indirect(f.Type)
		if !f.Anonymous || !reflect.PointerTo(inner).Implements(reflect.TypeFor[M]()) {
			continue
		}
		if field := v.Elem().Field(i); field.Kind() == reflect.Pointer && field.IsNil() {
			return m, false // the promoted method would panic
		}
		if reflect.DeepEqual(result(instance(inner, 0).Interface().(M)), result(m)) {
			return m, false
		}
	}
	return m, true
}

// instance returns a new *t whose embedded pointers are set, so that methods promoted
// through them can be called.
func instance(t reflect.Type, depth int) reflect.Value {
	const deepest = 8
	v := reflect.New(t)
	if t.Kind() != reflect.Struct || depth > deepest {
		return v
	}
	for i := range t.NumField() {
		f := v.Elem().Field(i)
		if t.Field(i).Anonymous && f.Kind() == reflect.Pointer && f.CanSet() {
			f.Set(instance(f.Type().Elem(), depth+1))
		}
	}
	return v
}

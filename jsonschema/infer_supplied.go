// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"bytes"
	jsonv1 "encoding/json"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	invopop "github.com/invopop/jsonschema"
)

// The methods by which a type has a say in its schema.
type (
	rawSupplier    interface{ JSONSchema() jsonv1.RawMessage }
	schemaSupplier interface{ JSONSchema() *invopop.Schema }
	extender       interface{ JSONSchemaExtend(s *invopop.Schema) }
)

// supplied returns the schema that t supplies by a JSONSchema method, if it has
// one of its own.
func (in *inferrer) supplied(t reflect.Type, p path) (s *invopop.Schema, ok bool, err error) {
	rawOf := func(v rawSupplier) any { return v.JSONSchema() }
	if v, ok := own(t, rawOf); ok {
		s, err = in.rawSchema(v.JSONSchema(), t, p)
		return s, true, err
	}
	schemaOf := func(v schemaSupplier) any { return v.JSONSchema() }
	if v, ok := own(t, schemaOf); ok {
		raw, err := jsonv1.Marshal(v.JSONSchema())
		if err != nil {
			return nil, true, p.errorf("JSONSchema: %v", err)
		}
		s, err = in.rawSchema(raw, t, p)
		return s, true, err
	}
	return nil, false, nil
}

// adjust lets the methods of t change the schema that was inferred for it.
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

// own returns a value of type *t as an M, unless t is a struct that has the
// method of M only from an embedded field: that speaks for the field, not for
// all of the struct. But where the struct's JSON form is the field's too, by
// promoted methods, so is its schema.
//
// Reflection cannot tell a promoted method from one that t declares. But the
// promoted one has the same result.
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
			return m, false // nothing to call the method on
		}
		if reflect.DeepEqual(result(instance(inner, 0).Interface().(M)), result(m)) {
			return m, false
		}
	}
	return m, true
}

// instance returns a new *t whose embedded pointers are set, for methods that
// are promoted through them.
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

// rawSchema takes a schema as it was given. Inside another one it must stand on
// its own, for its references would point into the wrong document.
func (in *inferrer) rawSchema(raw jsonv1.RawMessage, t reflect.Type, p path) (*invopop.Schema, error) {
	v := jsontext.Value(bytes.Clone(raw))
	if err := v.Compact(); err != nil {
		return nil, p.errorf("JSONSchema: %v", err)
	}
	s := &invopop.Schema{}
	if v.Kind() != '{' {
		if v.Kind() != 't' && v.Kind() != 'f' {
			return nil, p.errorf("JSONSchema: a schema is a JSON object or a boolean")
		}
		in.notes[s] = note{raw: jsonv1.RawMessage(v)}
		return s, nil
	}
	members, err := readMembers(v)
	if err != nil {
		return nil, p.errorf("JSONSchema: %v", err)
	}
	if t != in.root && bytes.Contains(v, []byte(`"$ref"`)) {
		return nil, p.errorf("JSONSchema: a schema used inside another must not contain $ref")
	}
	kept := v[:0:0]
	kept = append(kept, '{')
	for _, m := range members {
		switch m.name {
		case "$schema", "$id":
			continue
		case "type":
			_ = json.Unmarshal(m.value, &s.Type) // a list of types stays unknown to tags
		}
		kept = appendMember(kept, m.name, m.value)
	}
	in.notes[s] = note{raw: jsonv1.RawMessage(append(kept, '}'))}
	return s, nil
}

type member struct {
	name  string
	value jsontext.Value
}

// readMembers splits a JSON object, keeping the order of its members.
func readMembers(obj jsontext.Value) ([]member, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(obj))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var members []member
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = value.Clone()
		members = append(members, m)
	}
	_, err := dec.ReadToken()
	return members, err
}

// appendMember appends one member to an object that is not closed yet.
func appendMember(obj []byte, name string, value []byte) []byte {
	if obj[len(obj)-1] != '{' {
		obj = append(obj, ',')
	}
	obj, _ = jsontext.AppendQuote(obj, name)
	obj = append(obj, ':')
	return append(obj, value...)
}

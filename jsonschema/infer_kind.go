// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"encoding"
	"encoding/base64"
	jsonv1 "encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	invopop "github.com/invopop/jsonschema"
)

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	byteType     = reflect.TypeFor[byte]()
)

// jsonMethods are the interfaces by which a type takes its JSON form into its
// own hands, textWriters and textReaders those by which it becomes a string.
var (
	jsonMethods = []reflect.Type{
		reflect.TypeFor[json.MarshalerTo](),
		reflect.TypeFor[json.Marshaler](),
		reflect.TypeFor[json.UnmarshalerFrom](),
		reflect.TypeFor[json.Unmarshaler](),
	}
	textWriters = []reflect.Type{
		reflect.TypeFor[encoding.TextMarshaler](),
		reflect.TypeFor[encoding.TextAppender](),
	}
	textReaders = []reflect.Type{reflect.TypeFor[encoding.TextUnmarshaler]()}
)

func implements(t reflect.Type, ifaces []reflect.Type) bool {
	for _, i := range ifaces {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// expand returns the schema of t, which is no pointer and supplies none itself.
// The order of the cases is the order in which the JSON package looks at a type.
func (in *inferrer) expand(t reflect.Type, p path) (*invopop.Schema, error) {
	switch {
	case t == timeType:
		return &invopop.Schema{Type: "string", Format: "date-time"}, nil
	case t == durationType:
		return nil, p.errorf("time.Duration has no JSON form; use a number of a stated unit, a string, or a type with MarshalText and UnmarshalText")
	case t.PkgPath() == "math/big" && t.Name() == "Int": // by name, since to mention it links all of its methods
		return &invopop.Schema{Type: "integer"}, nil
	case implements(t, jsonMethods):
		if promotesTime(t) {
			return &invopop.Schema{Type: "string", Format: "date-time"}, nil
		}
		return in.anyValue(), nil
	case implements(t, textWriters):
		return &invopop.Schema{Type: "string"}, nil
	case implements(t, textReaders):
		return in.anyValue(), nil
	}
	return in.expandKind(t, p)
}

func (in *inferrer) expandKind(t reflect.Type, p path) (*invopop.Schema, error) {
	switch t.Kind() {
	case reflect.Bool:
		return &invopop.Schema{Type: "boolean"}, nil
	case reflect.String:
		return &invopop.Schema{Type: "string"}, nil
	case reflect.Float32, reflect.Float64:
		return &invopop.Schema{Type: "number"}, nil
	case reflect.Interface:
		return in.anyValue(), nil
	case reflect.Struct:
		return in.expandStruct(t, p)
	case reflect.Map:
		return in.expandMap(t, p)
	case reflect.Slice, reflect.Array:
		return in.expandList(t, p)
	}
	if isInteger(t) {
		return integerSchema(t), nil
	}
	return nil, p.errorf("a Go %s has no JSON form", t.Kind())
}

// anyValue returns the schema that allows everything. See schemaWriter.anyValue
// for the form it takes.
func (in *inferrer) anyValue() *invopop.Schema {
	s := &invopop.Schema{}
	in.notes[s] = note{anyValue: true}
	return s
}

func isInteger(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr
}

// integerSchema states the range of a Go integer, because a number outside it
// cannot be decoded. The 64-bit limits say nothing useful to a model and are
// left out.
func integerSchema(t reflect.Type) *invopop.Schema {
	s := &invopop.Schema{Type: "integer"}
	unsigned := t.Kind() >= reflect.Uint
	bits := t.Bits()
	switch {
	case unsigned:
		s.Minimum = "0"
		if bits <= 32 {
			s.Maximum = number(1<<bits - 1)
		}
	case bits <= 32:
		s.Minimum = number(-1 << (bits - 1))
		s.Maximum = number(1<<(bits-1) - 1)
	}
	return s
}

func number(n int64) jsonv1.Number {
	return jsonv1.Number(strconv.FormatInt(n, 10))
}

func (in *inferrer) expandList(t reflect.Type, p path) (*invopop.Schema, error) {
	n := uint64(0)
	if t.Kind() == reflect.Array {
		n = uint64(t.Len())
	}
	if t.Elem() == byteType {
		s := &invopop.Schema{Type: "string", ContentEncoding: "base64"}
		if t.Kind() == reflect.Array {
			n = uint64(base64.StdEncoding.EncodedLen(t.Len()))
			s.MinLength, s.MaxLength = &n, &n
		}
		return s, nil
	}
	items, err := in.element(t.Elem(), p.elem())
	if err != nil {
		return nil, err
	}
	s := &invopop.Schema{Type: "array", Items: items}
	if t.Kind() == reflect.Array {
		s.MinItems, s.MaxItems = &n, &n
	}
	return s, nil
}

// element returns the schema of what a list or map holds: its nil pointers are
// written as null.
func (in *inferrer) element(t reflect.Type, p path) (*invopop.Schema, error) {
	s, null, err := in.schema(t, p)
	if err == nil && null {
		in.notes.setNull(s)
	}
	return s, err
}

func (in *inferrer) expandMap(t reflect.Type, p path) (*invopop.Schema, error) {
	if !keyIsString(t.Key()) {
		return nil, p.errorf("a map key of kind %s is not a string in JSON", t.Key().Kind())
	}
	elem, err := in.element(t.Elem(), p.elem())
	if err != nil {
		return nil, err
	}
	if in.notes[elem].anyValue {
		elem = invopop.TrueSchema
	}
	return &invopop.Schema{
		Type:                 "object",
		Properties:           invopop.NewProperties(),
		AdditionalProperties: elem,
	}, nil
}

// keyIsString reports whether the JSON package writes keys of type t as strings.
func keyIsString(t reflect.Type) bool {
	switch {
	case implements(t, textWriters):
		return true
	case t.Kind() == reflect.Pointer:
		return keyIsString(t.Elem())
	case t.Kind() == reflect.Bool, t.Kind() == reflect.Interface:
		return false
	}
	return t.Kind() == reflect.String || isInteger(t) || t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64
}

// promotesTime reports whether the JSON methods of t are those of an embedded
// time.Time, so that a t is written as a bare time however many other fields it
// has. A struct that embeds a time and writes itself differently is told apart
// by writing two of them.
func promotesTime(t reflect.Type) bool {
	index, ok := embeddedTime(t, 0)
	if !ok {
		return false
	}
	for _, sec := range []int64{0, 1e9} {
		moment := time.Unix(sec, 0).UTC()
		v := reflect.New(t)
		f := v.Elem()
		for _, i := range index {
			f = settable(f.Field(i))
		}
		if !f.CanSet() {
			return false
		}
		f.Set(reflect.ValueOf(moment))
		got, err1 := json.Marshal(v.Interface())
		want, err2 := json.Marshal(moment)
		if err1 != nil || err2 != nil || string(got) != string(want) {
			return false
		}
	}
	return true
}

// embeddedTime finds an embedded time.Time, however deep.
func embeddedTime(t reflect.Type, depth int) (index []int, ok bool) {
	const deepest = 8 // also stops at a struct that embeds a pointer to itself
	if t.Kind() != reflect.Struct || depth > deepest {
		return nil, false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous {
			continue
		}
		elem := indirect(f.Type)
		if elem == timeType {
			return []int{i}, true
		}
		if rest, ok := embeddedTime(elem, depth+1); ok {
			return append([]int{i}, rest...), true
		}
	}
	return nil, false
}

// settable follows an embedded pointer, allocating it if need be.
func settable(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() && v.CanSet() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// indirect removes the one pointer that Go allows around an embedded struct.
func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		return t.Elem()
	}
	return t
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"encoding"
	"encoding/base64"
	jsonv1 "encoding/json"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	invopop "github.com/invopop/jsonschema"
)

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	urlType      = reflect.TypeFor[url.URL]()
	numberType   = reflect.TypeFor[jsonv1.Number]()
	byteType     = reflect.TypeFor[byte]()
)

// jsonMethods are the interfaces of types that encode or decode themselves as JSON.
// textWriters and textReaders are the interfaces of types that do so as text.
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

// expand returns the schema of t, which is not a pointer and has no JSONSchema method. The
// cases are in the order in which the JSON package checks them.
func (in *inferrer) expand(t reflect.Type, p path) (*invopop.Schema, error) {
	switch {
	case t == timeType:
		return &invopop.Schema{Type: "string", Format: "date-time"}, nil
	case t == durationType:
		return &invopop.Schema{Type: "string", Pattern: durationPattern, Description: `duration such as "1m30s"`}, nil
	case t == urlType:
		return &invopop.Schema{Type: "string", Format: "uri"}, nil
	case t == numberType:
		return &invopop.Schema{Type: "number"}, nil
	case t.PkgPath() == "math/big" && t.Name() == "Int": // by name: naming the type would link all of its methods
		return &invopop.Schema{Type: "integer"}, nil
	case implements(t, jsonMethods):
		if promotesTime(t) {
			return &invopop.Schema{Type: "string", Format: "date-time"}, nil
		}
		return &invopop.Schema{}, nil
	case implements(t, textWriters):
		return textSchema(t), nil
	case implements(t, textReaders):
		return &invopop.Schema{Type: "string"}, nil
	}
	return in.expandKind(t, p)
}

// durationPattern describes what [time.ParseDuration] accepts, except plus signs and
// numbers that begin with a decimal point.
const durationPattern = `^-?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|^0$`

// textSchema returns the schema of a type that is encoded as text.
func textSchema(t reflect.Type) *invopop.Schema {
	s := &invopop.Schema{Type: "string"}
	switch {
	case t == reflect.TypeFor[netip.Addr]():
		s.Description = "IP address"
	case t == reflect.TypeFor[netip.AddrPort]():
		s.Description = "IP address and port such as 192.0.2.1:80"
	case t == reflect.TypeFor[netip.Prefix]():
		s.Description = "network such as 192.0.2.0/24"
	case t.Name() == "UUID" && t.Kind() == reflect.Array && t.Elem() == byteType && t.Len() == 16:
		s.Format = "uuid"
	}
	return s
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
		return &invopop.Schema{}, nil
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

func isInteger(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr
}

func isFloat(t reflect.Type) bool {
	return t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64
}

// integerSchema returns a schema with the range of a Go integer type, because numbers
// outside the range cannot be decoded. It omits the limits of 64-bit integers, which do not
// help a model, and those of int and uint, so that schemas are the same on every platform.
func integerSchema(t reflect.Type) *invopop.Schema {
	s := &invopop.Schema{Type: "integer"}
	unsigned := t.Kind() >= reflect.Uint
	bits := t.Bits()
	if t.Kind() == reflect.Int || t.Kind() == reflect.Uint || t.Kind() == reflect.Uintptr {
		bits = 64
	}
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
	items, err := in.schema(t.Elem(), p.elem())
	if err != nil {
		return nil, err
	}
	s := &invopop.Schema{Type: "array", Items: items}
	if t.Kind() == reflect.Array {
		s.MinItems, s.MaxItems = &n, &n
	}
	return s, nil
}

func (in *inferrer) expandMap(t reflect.Type, p path) (*invopop.Schema, error) {
	if !keyIsString(t.Key()) {
		return nil, p.errorf("a map key of kind %s is not a string in JSON", t.Key().Kind())
	}
	elem, err := in.schema(t.Elem(), p.elem())
	if err != nil {
		return nil, err
	}
	return &invopop.Schema{Type: "object", Properties: invopop.NewProperties(), AdditionalProperties: elem}, nil
}

// keyIsString reports whether the JSON package encodes keys of type t as strings.
func keyIsString(t reflect.Type) bool {
	switch {
	case implements(t, textWriters):
		return true
	case t.Kind() == reflect.Pointer:
		return keyIsString(t.Elem())
	}
	return t.Kind() == reflect.String || isInteger(t) || isFloat(t)
}

// promotesTime reports whether the JSON methods of t are promoted from an embedded
// time.Time, so that t is encoded as a time, without its other fields. It tries two
// different times to exclude a struct that embeds a time but declares its own JSON methods.
func promotesTime(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	f, ok := t.FieldByName("Time")
	if !ok || !f.Anonymous || indirect(f.Type) != timeType {
		return false
	}
	for _, seconds := range []int64{0, 1e9} {
		moment := time.Unix(seconds, 0).UTC()
		v := instance(t, 0)
		embedded, err := v.Elem().FieldByIndexErr(f.Index)
		if err != nil || !reflect.Indirect(embedded).CanSet() {
			return false
		}
		reflect.Indirect(embedded).Set(reflect.ValueOf(moment))
		got, err1 := json.Marshal(v.Interface())
		want, err2 := json.Marshal(moment)
		if err1 != nil || err2 != nil || string(got) != string(want) {
			return false
		}
	}
	return true
}

// indirect removes the pointer around an embedded struct. Go allows only one.
func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		return t.Elem()
	}
	return t
}

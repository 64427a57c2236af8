// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/token"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
)

// checkDecodable returns an error for a type that has a schema but cannot be decoded, so that
// every call with it would fail. Path is the path of t from the root, for the error.
func checkDecodable(t reflect.Type, path string, seen map[reflect.Type]bool) error {
	if seen[t] || decodesItself(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return checkDecodable(t.Elem(), path, seen)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("%v%s is an interface with methods: nothing says which type to decode; use a type, or any", t, path)
		}
	case reflect.Struct:
		for f := range t.Fields() {
			if err := checkDecodableField(f, path, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDecodableField(f reflect.StructField, path string, seen map[reflect.Type]bool) error {
	path += "." + f.Name
	embeds := f.Anonymous && f.Type.Kind() == reflect.Pointer
	switch {
	case f.Tag.Get("json") == "-":
		return nil
	case embeds && !token.IsExported(f.Type.Elem().Name()):
		return fmt.Errorf("%s is an embedded pointer to a type that is not exported, which no decoder can set; embed the type itself", path)
	case !f.IsExported() && !f.Anonymous:
		return nil
	}
	return checkDecodable(f.Type, path, seen)
}

// decodesItself reports whether a type implements an unmarshaler.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	for _, decoder := range []reflect.Type{
		reflect.TypeFor[jsonv2.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if t.Implements(decoder) || p.Implements(decoder) {
			return true
		}
	}
	return false
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package golden

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

// Options formats the numbers, strings and booleans of options, a pointer to a struct, and
// whether its other fields are nil.
func Options(options any) string {
	var b strings.Builder
	v := reflect.ValueOf(options).Elem()
	fmt.Fprintf(&b, "%s\n", v.Type().Name())
	writeOptions(&b, "  ", v)
	return b.String()
}

func writeOptions(b *strings.Builder, indent string, v reflect.Value) {
	for field, value := range v.Fields() {
		switch kind := field.Type.Kind(); {
		case !field.IsExported():
		case kind == reflect.Int && (value.Int() == math.MaxInt32 || value.Int() == math.MaxInt): // the same on a 32-bit system
			fmt.Fprintf(b, "%s%s: no limit\n", indent, field.Name)
		case isPlain(field.Type):
			fmt.Fprintf(b, "%s%s: %v\n", indent, field.Name, value)
		case isGroup(field.Type):
			fmt.Fprintf(b, "%s%s\n", indent, field.Name)
			writeOptions(b, indent+"  ", value)
		case kind != reflect.Struct && !value.IsNil():
			fmt.Fprintf(b, "%s%s: not nil\n", indent, field.Name)
		}
	}
}

// SetAll sets all integers of options, a pointer to a struct, to n, and returns the options.
func SetAll[O any](options *O, n int64) *O {
	setAll(reflect.ValueOf(options).Elem(), n)
	return options
}

func setAll(v reflect.Value, n int64) {
	for _, value := range v.Fields() {
		switch {
		case isGroup(value.Type()):
			setAll(value, n)
		case value.CanInt() && value.CanSet():
			value.SetInt(n)
		}
	}
}

// isGroup reports whether t is a struct of options.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.HasSuffix(t.Name(), "Options")
}

// isPlain reports whether t is a number, a string or a boolean, or a struct of them.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float64, reflect.Int, reflect.Int32, reflect.Int64:
		return true
	case reflect.Struct:
		for field := range t.Fields() {
			if !isPlain(field.Type) {
				return false
			}
		}
		return true
	}
	return false
}

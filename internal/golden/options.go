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
	for field, value := range v.Fields() {
		switch kind := field.Type.Kind(); {
		case !field.IsExported():
		case kind == reflect.Int && (value.Int() == math.MaxInt32 || value.Int() == math.MaxInt): // the same on a 32-bit system
			fmt.Fprintf(&b, "  %s: no limit\n", field.Name)
		case isPlain(field.Type):
			fmt.Fprintf(&b, "  %s: %v\n", field.Name, value)
		case kind != reflect.Struct && !value.IsNil():
			fmt.Fprintf(&b, "  %s: not nil\n", field.Name)
		}
	}
	return b.String()
}

// SetAll sets all integers of options, a pointer to a struct, to n, and returns the options.
func SetAll[O any](options *O, n int64) *O {
	for _, value := range reflect.ValueOf(options).Elem().Fields() {
		if value.CanInt() && value.CanSet() {
			value.SetInt(n)
		}
	}
	return options
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

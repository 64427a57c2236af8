// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import "reflect"

// maxSizeDepth bounds the depth to which sizeOf follows a value. Results are at most as deep
// as the JSON that they were decoded from.
const maxSizeDepth = 256

// sizeOf returns the approximate memory of a value in bytes, including what it points to. The
// length of its JSON would not do: a small object in JSON can be a large struct.
func sizeOf(v any) int { return sizeOfValue(reflect.ValueOf(v), 0) }

// sizeOfValue returns the size of a value, including the value itself.
func sizeOfValue(v reflect.Value, depth int) int {
	if !v.IsValid() {
		return 0
	}
	return int(v.Type().Size()) + sizeBehind(v, depth)
}

// sizeBehind returns the memory that a value refers to.
func sizeBehind(v reflect.Value, depth int) (size int) {
	if depth++; depth > maxSizeDepth {
		return 0
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		return sizeOfValue(v.Elem(), depth)
	case reflect.Struct:
		for _, field := range v.Fields() {
			size += sizeBehind(field, depth)
		}
	case reflect.Array, reflect.Slice:
		return sizeOfList(v, depth)
	case reflect.Map:
		const bucket = 16 // of the map itself, for each entry
		for all := v.MapRange(); all.Next(); {
			size += bucket + sizeOfValue(all.Key(), depth) + sizeOfValue(all.Value(), depth)
		}
	}
	return size
}

func sizeOfList(v reflect.Value, depth int) (size int) {
	if v.Kind() == reflect.Slice {
		size = v.Cap() * int(v.Type().Elem().Size())
	}
	switch v.Type().Elem().Kind() {
	case reflect.String, reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Array, reflect.Slice, reflect.Map:
		for i := range v.Len() {
			size += sizeBehind(v.Index(i), depth)
		}
	}
	return size
}

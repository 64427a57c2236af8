// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	jsonv1 "encoding/json"
	"strconv"
	"strings"
)

// isAnnotation reports whether a keyword has no say in validity. Unknown
// keywords have none either, but only those marked as extensions are believed.
func isAnnotation(key string) bool {
	switch key {
	case "$schema", "$comment", "$defs", "definitions",
		"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"contentEncoding", "contentMediaType", "contentSchema", "enumNames":
		return true
	}
	return strings.HasPrefix(key, "x-")
}

// annotations looks at the keywords of a schema that have no say in validity, but
// in whether the schema is one.
func (b *proofBuilder) annotations(pointer string, obj map[string]any) {
	if b.annotated[pointer] {
		return
	}
	b.annotated[pointer] = true
	for key, value := range obj {
		if isAnnotation(key) && !b.annotation(pointer, key, value) {
			b.refuse(pointer + "/" + escapeToken(key))
		}
	}
}

func (b *proofBuilder) annotation(pointer, key string, value any) (ok bool) {
	switch key {
	case "$schema":
		return pointer == ""
	case "$comment", "title", "description", "contentEncoding", "contentMediaType":
		_, ok = value.(string)
		return ok
	case "deprecated", "readOnly", "writeOnly":
		_, ok = value.(bool)
		return ok
	case "examples":
		_, ok = value.([]any)
		return ok
	case "contentSchema":
		b.schema(pointer+"/contentSchema", value)
	case "$defs", "definitions":
		defs, ok := value.(map[string]any)
		for name, schema := range defs {
			b.schema(pointer+"/"+key+"/"+escapeToken(name), schema)
		}
		return ok
	}
	return true
}

// keyword adds one keyword to n and reports whether it could.
func (b *proofBuilder) keyword(n *node, pointer, key string, value any) bool {
	switch key {
	case "additionalProperties": // see object, as for the next two
		return true
	case "properties":
		_, ok := value.(map[string]any)
		return ok
	case "required":
		list, ok := value.([]any)
		names := stringsOf(list)
		return ok && len(names) == len(list) && distinct(names)
	case "type":
		return n.setTypes(value)
	case "enum":
		list, ok := value.([]any)
		n.allow(list)
		return ok
	case "const":
		n.allow([]any{value})
		return true
	case "anyOf", "oneOf":
		return b.choice(n, pointer+"/"+key, value)
	case "items":
		n.items = b.schema(pointer+"/items", value)
		return true
	case "minItems":
		return setSize(&n.minItems, value)
	case "maxItems":
		return setSize(&n.maxItems, value)
	case "uniqueItems":
		unique, ok := value.(bool)
		n.unique = unique
		return ok
	}
	return b.scalarKeyword(n, key, value)
}

func (b *proofBuilder) scalarKeyword(n *node, key string, value any) bool {
	switch key {
	case "minLength":
		return setSize(&n.minLength, value)
	case "maxLength":
		return setSize(&n.maxLength, value)
	case "minimum":
		return setBound(&n.minimum, value)
	case "maximum":
		return setBound(&n.maximum, value)
	case "exclusiveMinimum":
		return setBound(&n.above, value)
	case "exclusiveMaximum":
		return setBound(&n.below, value)
	case "multipleOf":
		factor, _ := value.(jsonv1.Number)
		whole, ok := wholeNumber([]byte(factor))
		n.multipleOf, n.fraction = whole, !ok
		return exact(factor).Sign() > 0
	case "pattern":
		text, ok := value.(string)
		n.pattern = b.patterns[text]
		return ok && n.pattern != nil
	case "format":
		name, ok := value.(string)
		if b.opts.AssertFormats {
			n.format = formats[name]
		}
		return ok
	}
	return false
}

// choice handles a list of constants, each of which may have a title.
func (b *proofBuilder) choice(n *node, pointer string, value any) bool {
	values := constants(listOf(value))
	for i := range values {
		obj, _ := listOf(value)[i].(map[string]any)
		b.annotations(pointer+"/"+strconv.Itoa(i), obj)
		if !annotatesOnly(obj, "const") {
			return false
		}
	}
	n.allow(values)
	return values != nil && !repeats(values) // which would fit two alternatives
}

// allow narrows the values to the given ones. A second list, a const beside an
// enum, allows nothing: rare enough to be left to the validator.
func (n *node) allow(values []any) {
	if n.enum != nil {
		values = nil
	}
	n.enum = make([]constant, len(values))
	for i, v := range values {
		n.enum[i] = newConstant(v)
	}
}

func (n *node) setTypes(value any) bool {
	names := []any{value}
	if list, ok := value.([]any); ok {
		names = list
	}
	n.types = 0
	for _, name := range names {
		text, _ := name.(string)
		set := typeSets[text]
		if set == 0 {
			return false
		}
		n.types |= set
	}
	return len(names) > 0 && distinct(stringsOf(names))
}

func distinct(names []string) bool {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		seen[name] = true
	}
	return len(seen) == len(names)
}

func setSize(to *int, value any) bool {
	const most = 1 << 30
	number, _ := value.(jsonv1.Number)
	size, ok := wholeNumber([]byte(number))
	*to = int(min(size, most))
	return ok && size >= 0 && size <= most
}

func setBound(to **bound, value any) bool {
	number, ok := value.(jsonv1.Number)
	if ok {
		*to = newBound(number)
	}
	return ok
}

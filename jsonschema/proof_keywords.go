// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	jsonv1 "encoding/json"
	"regexp"
	"slices"
	"strings"
)

// isAnnotation reports whether a keyword has no say in validity. Unknown
// keywords have none either, but only those marked as extensions are believed.
func isAnnotation(key string) bool {
	switch key {
	case "$schema", "$comment", "$defs", "definitions",
		"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"contentEncoding", "contentMediaType", "contentSchema":
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
			b.beyond = true
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
	case "items":
		n.items = b.schema(pointer+"/items", value)
		return true
	case "minItems":
		return setSize(&n.minItems, value)
	case "maxItems":
		return setSize(&n.maxItems, value)
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
		number, _ := value.(jsonv1.Number)
		whole, ok := wholeNumber([]byte(number))
		n.multipleOf = whole
		return ok && whole > 0
	case "pattern":
		text, ok := value.(string)
		re, err := regexp.Compile(text)
		n.pattern = re
		return ok && err == nil
	case "format":
		_, ok := value.(string)
		n.format = b.format(value)
		return ok
	}
	return false
}

// allow narrows the values to the given ones. A second list, a const beside an
// enum, allows nothing: rare enough to be left to the full validator.
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

func (b *proofBuilder) format(value any) func([]byte) bool {
	name, _ := value.(string)
	switch {
	case !b.opts.AssertFormats || !slices.Contains(assertable, name):
		return nil
	case name == "date-time":
		return isDateTime
	case name == "date":
		return isDate
	}
	return never
}

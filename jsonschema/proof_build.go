// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	jsonv1 "encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/schematree"
)

// buildProof returns the proof of a document. beyond is "" if the document is known to be a
// valid schema, so that it need not be validated against its metaschema. Otherwise beyond
// is a pointer to a keyword that is malformed or outside the provable subset. The proof can
// also be nil for a valid schema.
//
// The provable subset covers draft-07 and later, without $id and anchors: type, enum,
// const, the bounds of lengths, numbers and items, multipleOf, pattern, format,
// uniqueItems, items with a single schema, properties, required, additionalProperties,
// anyOf of a schema and null, anyOf and oneOf of constants, local references without other
// keywords, annotations, and definitions of schemas in the subset.
func buildProof(document any, d dialect, known *patterns, opts Options) (proof *node, beyond string) {
	if d < draft7 {
		return nil, "/$schema"
	}
	b := &proofBuilder{document: document, patterns: known, opts: opts, known: map[string]*node{}, annotated: map[string]bool{}}
	root := b.schema("", document)
	switch {
	case b.beyond != "":
		return nil, b.beyond
	case b.circular():
		return nil, "/$ref"
	case b.crowded:
		return nil, ""
	}
	return root, ""
}

// circular reports whether a node leads back to itself without consuming a value.
func (b *proofBuilder) circular() bool {
	for _, n := range b.known {
		for hops := 0; n.nullOr != nil; hops++ {
			if hops == maxRefHops {
				return true
			}
			n = n.nullOr
		}
	}
	return false
}

// A proofBuilder builds the nodes of one document. It continues after it finds a keyword
// outside the subset, but the result is then not used.
type proofBuilder struct {
	document  any
	patterns  *patterns
	opts      Options
	known     map[string]*node // by pointer; also ends recursion
	annotated map[string]bool  // by pointer: annotations have been checked
	beyond    string           // pointer to a keyword outside the subset, or ""
	crowded   bool             // an object requires more properties than the proof can count
}

var anyNode = func() *node {
	n := newNode()
	n.items, n.others = n, n
	return n
}()

func newNode() *node {
	return &node{types: everySet, maxLength: -1, maxItems: -1}
}

// markUnprovable records that the keyword at pointer is outside the subset. It returns a
// non-nil node.
func (b *proofBuilder) markUnprovable(pointer string) *node {
	b.beyond = cmp.Or(b.beyond, cmp.Or(pointer, "/"))
	return anyNode
}

func (b *proofBuilder) schema(pointer string, schema any) *node {
	if n := b.known[pointer]; n != nil {
		return n
	}
	if schema == true {
		return anyNode
	}
	obj, ok := schema.(map[string]any)
	if !ok {
		return b.markUnprovable(pointer)
	}
	b.annotations(pointer, obj)
	if ref, ok := obj["$ref"]; ok {
		return b.reference(pointer, ref, obj)
	}
	n := newNode()
	n.items, n.others = anyNode, anyNode
	n.nullAbsent = b.opts.OptionalNull
	b.known[pointer] = n
	if list, ok := obj["anyOf"]; ok && constants(listOf(list)) == nil {
		b.nullable(n, pointer, obj)
		return n
	}
	for _, key := range slices.Sorted(maps.Keys(obj)) {
		if !isAnnotation(key) && !b.keyword(n, pointer, key, obj[key]) {
			b.markUnprovable(pointer + "/" + schematree.Escape(key))
		}
	}
	b.object(n, pointer, obj)
	return n
}

// maxRefHops bounds a chain of references.
const maxRefHops = 16

// reference follows a reference, which may only have annotations next to it.
func (b *proofBuilder) reference(from string, ref any, obj map[string]any) *node {
	for range maxRefHops {
		text, _ := ref.(string)
		pointer, local := schematree.LocalRef(text)
		if !local || !annotatesOnly(obj, "$ref") {
			return b.markUnprovable(from + "/$ref")
		}
		target, ok := schematree.Lookup(b.document, schematree.Split(pointer))
		if !ok {
			return b.markUnprovable(from + "/$ref")
		}
		obj, _ = target.(map[string]any)
		if ref, ok = obj["$ref"]; !ok {
			return b.schema(pointer, target)
		}
		b.annotations(pointer, obj)
	}
	return b.markUnprovable(from + "/$ref")
}

// nullable handles an anyOf of a schema and null.
func (b *proofBuilder) nullable(n *node, pointer string, obj map[string]any) {
	list, _ := obj["anyOf"].([]any)
	if len(list) != 2 || !annotatesOnly(obj, "anyOf") {
		b.markUnprovable(pointer + "/anyOf")
		return
	}
	null, _ := list[1].(map[string]any)
	if len(null) != 1 || null["type"] != "null" {
		b.markUnprovable(pointer + "/anyOf")
		return
	}
	n.nullOr = b.schema(pointer+"/anyOf/0", list[0])
}

// annotatesOnly reports whether obj has no keywords other than key and annotations.
func annotatesOnly(obj map[string]any, key string) bool {
	for k := range obj {
		if k != key && !isAnnotation(k) {
			return false
		}
	}
	return true
}

// object handles properties, required and additionalProperties.
func (b *proofBuilder) object(n *node, pointer string, obj map[string]any) {
	switch more, given := obj["additionalProperties"]; {
	case more == false:
		n.others = nil
	case given:
		n.others = b.schema(pointer+"/additionalProperties", more)
	}
	names, _ := obj["required"].([]any)
	required := stringsOf(names)
	props, _ := obj["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		p := property{name: name}
		if props[name] != false { // the node stays nil for a forbidden property
			p.node = b.schema(pointer+"/properties/"+schematree.Escape(name), props[name])
		}
		n.properties = append(n.properties, p)
	}
	for _, name := range required {
		if _, ok := props[name]; !ok {
			n.properties = append(n.properties, property{name: name, node: n.others})
		}
	}
	b.require(n, required)
}

// require assigns a bit to every required property.
func (b *proofBuilder) require(n *node, required []string) {
	for i := range n.properties {
		p := &n.properties[i]
		if !slices.Contains(required, p.name) {
			continue
		}
		p.bit = n.required + 1
		n.required |= p.bit
		if p.bit == 0 { // there are more than 64
			b.crowded = true
		}
	}
	if len(n.properties) < manyProperties {
		return
	}
	n.index = make(map[string]int, len(n.properties))
	for i, p := range n.properties {
		n.index[p.name] = i
	}
}

// isAnnotation reports whether a keyword does not affect validity. Unknown keywords count
// only if they are marked as extensions.
func isAnnotation(key string) bool {
	switch key {
	case "$schema", "$comment", "$defs", "definitions",
		"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"contentEncoding", "contentMediaType", "contentSchema", "enumNames":
		return true
	}
	return strings.HasPrefix(key, "x-")
}

// annotations checks annotations. A malformed annotation makes a schema invalid.
func (b *proofBuilder) annotations(pointer string, obj map[string]any) {
	if b.annotated[pointer] {
		return
	}
	b.annotated[pointer] = true
	for key, value := range obj {
		if isAnnotation(key) && !b.annotation(pointer, key, value) {
			b.markUnprovable(pointer + "/" + schematree.Escape(key))
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
			b.schema(pointer+"/"+key+"/"+schematree.Escape(name), schema)
		}
		return ok
	}
	return true
}

// keyword adds a keyword to n. It returns false if the keyword is outside the subset.
func (b *proofBuilder) keyword(n *node, pointer, key string, value any) bool {
	switch key {
	case "additionalProperties": // see object, also for the next two
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
		made, err := b.patterns.compile(text)
		n.pattern = made
		return ok && err == nil && made.Regexp != nil
	case "format":
		name, ok := value.(string)
		if b.opts.AssertFormats {
			n.format = formats[name]
		}
		return ok
	}
	return false
}

// choice adds a list of constants, which may have titles.
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
	return values != nil && !repeats(values) // two alternatives would match
}

// allow restricts the values to the given ones. A second list, such as a const next to an
// enum, allows nothing: the validator decides this case.
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

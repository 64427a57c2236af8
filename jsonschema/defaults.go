// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/schematree"
)

// WithDefaults returns data, one JSON value, with defaults for the properties that are
// absent from its objects or null, at every depth, including in lists. A value that is
// present replaces the default; they are not merged. A default is used as it is: defaults
// inside it are not filled in. An absent object without a default is not created for the
// defaults inside it. WithDefaults returns data itself if the schema has no defaults, or if
// data is not well-formed.
func (s *Schema) WithDefaults(data []byte) []byte {
	s.mustBeMade()
	f := s.filler()
	if f == nil {
		return data
	}
	scan := jsonscan.Get(data, maxInputDepth)
	defer scan.Release()
	filled := f.fill(make([]byte, 0, len(data)+64), scan)
	if scan.End() != nil {
		return data
	}
	return filled
}

// A filler fills defaults into values of one schema. A nil filler copies the values. Defaults
// are never merged: a value from the caller replaces the whole default, or handlers would get
// values that neither the caller nor the schema specified.
type filler struct {
	value      []byte  // the default of the value itself, nil if there is none
	same       *filler // another filler for the same value, nil if there is none
	properties map[string]*filler
	names      []string // of the properties that have defaults, sorted
	rest       *filler  // for properties that are not listed
	items      *filler
}

// fill appends the next value of scan, with defaults.
func (f *filler) fill(dst []byte, scan *jsonscan.Scanner) []byte {
	for hops := 0; f != nil && f.same != nil && hops < maxPointers; hops++ {
		f = f.same
	}
	switch kind := scan.Kind(); {
	case f == nil:
	case kind == '{':
		return f.fillObject(dst, scan)
	case kind == '[' && f.items != nil:
		dst = append(dst, '[')
		scan.Array()
		for first := true; scan.Element(); first = false {
			if !first {
				dst = append(dst, ',')
			}
			dst = f.items.fill(dst, scan)
		}
		return append(dst, ']')
	}
	return append(dst, scan.Value()...)
}

func (f *filler) fillObject(dst []byte, scan *jsonscan.Scanner) []byte {
	given := make(map[string]bool, len(f.names))
	start := len(dst)
	key := func(name string) {
		if dst = append(dst, ','); len(dst) == start+1 {
			dst[start] = '{'
		}
		dst = append(jsonscan.AppendString(dst, name), ':')
	}
	for scan.Object(); scan.Member(); {
		name := string(scan.Name())
		property, listed := f.properties[name]
		if !listed {
			property = f.rest
		}
		if property != nil && property.value != nil && listed {
			if scan.Kind() == 'n' {
				scan.Skip()
				continue
			}
			given[name] = true
		}
		key(name)
		dst = property.fill(dst, scan)
	}
	for _, name := range f.names {
		if !given[name] {
			key(name)
			dst = append(dst, f.properties[name].value...)
		}
	}
	if len(dst) == start {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// newFiller returns the filler of a document, or nil if no property that it can reach has a
// default.
func newFiller(document any) *filler {
	b := fillerBuilder{document: document, known: map[string]*filler{}}
	f := b.build(nil)
	if !b.found {
		return nil
	}
	return f
}

type fillerBuilder struct {
	document any
	known    map[string]*filler // by pointer
	found    bool               // whether there is a default
}

// build returns the filler of the schema at pointer.
func (b *fillerBuilder) build(pointer []string) *filler {
	at := schematree.Join(pointer)
	if f, ok := b.known[at]; ok {
		return f
	}
	schema, _ := schematree.Lookup(b.document, pointer)
	obj, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	f := &filler{}
	b.known[at] = f
	b.follow(f, obj, pointer)
	below := func(tokens ...string) *filler { return b.build(append(slices.Clone(pointer), tokens...)) }
	properties, _ := obj["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := below("properties", name)
		if property == nil {
			continue
		}
		if f.properties == nil {
			f.properties = map[string]*filler{}
		}
		f.properties[name] = property
		if property.value != nil {
			f.names = append(f.names, name)
			b.found = true
		}
	}
	if obj["items"] != nil {
		f.items = below("items")
	}
	if obj["additionalProperties"] != nil {
		f.rest = below("additionalProperties")
	}
	if value, ok := obj["default"]; ok {
		f.value, _ = marshal(value)
	}
	return f
}

// follow makes f use the schema that obj refers to: a definition, or the alternative to null.
func (b *fillerBuilder) follow(f *filler, obj map[string]any, pointer []string) {
	ref, _ := obj["$ref"].(string)
	if target, local := schematree.LocalRef(ref); local {
		f.same = b.build(schematree.Split(target))
		return
	}
	list := listOf(obj["anyOf"])
	for i := range list {
		other, _ := list[len(list)-1-i].(map[string]any)
		if len(list) == 2 && other["type"] == "null" {
			f.same = b.build(append(slices.Clone(pointer), "anyOf", strconv.Itoa(i)))
		}
	}
}

// CheckDefaults returns an error if a default does not match the schema that it belongs to,
// or if a required property has a default, which would never be used. It checks every
// schema that [Schema.Validate] may apply, and those in definitions.
func (s *Schema) CheckDefaults() (err error) {
	s.mustBeMade()
	var withDefault []string
	schematree.WalkReferenced(s.document, func(pointer string, schema any) {
		obj, _ := schema.(map[string]any)
		if _, ok := obj["default"]; ok {
			withDefault = append(withDefault, pointer)
		}
		properties, _ := obj["properties"].(map[string]any)
		for _, name := range stringsOf(listOf(obj["required"])) {
			property, _ := properties[name].(map[string]any)
			if _, ok := property["default"]; ok && err == nil {
				err = fmt.Errorf("jsonschema: %q at %q is required and has a default, which would never be used; remove one of the two", name, pointer+"/required")
			}
		}
	})
	if err != nil || len(withDefault) == 0 {
		return err
	}
	return s.checkDefaultsAt(withDefault)
}

// checkDefaultsAt checks the defaults of the schemas at the given pointers.
func (s *Schema) checkDefaultsAt(pointers []string) error {
	c := newCompiler(newPatterns(), formats)
	root, err := compileAt(c, s.document)
	if err != nil {
		return err
	}
	roots := anchored(c, s.document)
	owners := make([]*santhosh.Schema, len(pointers)) // nil for a schema in a definition that is never used and not valid
	for i, pointer := range pointers {
		owners[i], err = c.Compile(location + "#" + (&url.URL{Fragment: pointer}).EscapedFragment())
		if err == nil {
			roots = append(roots, owners[i])
		}
	}
	graph := surveyOf(append(roots, root))
	if err := graph.checkWork(); err != nil {
		return err
	}
	relax(graph, s.document, formats)
	v := validatorOf(root, graph)
	for i, pointer := range pointers {
		if owners[i] == nil {
			continue
		}
		owner, _ := schematree.Lookup(s.document, schematree.Split(pointer))
		value := owner.(map[string]any)["default"]
		v.root = owners[i]
		b := budgetOf(context.Background(), s.maxWork)
		failed, err := v.validate(&b, value)
		if failed != nil {
			err = explain(s.document, value, maxProblems, failureOf(failed, 1))
		}
		if err != nil {
			return fmt.Errorf("jsonschema: the default at %q does not fit: %w", pointer, err)
		}
	}
	return nil
}

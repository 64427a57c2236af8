// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// applicator is what the value of a keyword is made of, if of schemas.
type applicator int

const (
	oneSchema    applicator = iota + 1
	schemaList              // an array of schemas
	schemaMap               // an object with schemas
	schemaOrList            // "items" before 2020-12
)

// applicators are the keywords, of all dialects, whose values hold schemas.
var applicators = map[string]applicator{
	"$defs":                 schemaMap,
	"additionalItems":       oneSchema,
	"additionalProperties":  oneSchema,
	"allOf":                 schemaList,
	"anyOf":                 schemaList,
	"contains":              oneSchema,
	"contentSchema":         oneSchema,
	"definitions":           schemaMap,
	"dependencies":          schemaMap,
	"dependentSchemas":      schemaMap,
	"else":                  oneSchema,
	"if":                    oneSchema,
	"items":                 schemaOrList,
	"not":                   oneSchema,
	"oneOf":                 schemaList,
	"patternProperties":     schemaMap,
	"prefixItems":           schemaList,
	"properties":            schemaMap,
	"propertyNames":         oneSchema,
	"then":                  oneSchema,
	"unevaluatedItems":      oneSchema,
	"unevaluatedProperties": oneSchema,
}

// walkSchemas calls visit for schema, found at pointer, and for every schema in
// it, outer before inner, in a fixed order. A schema is a bool or an object;
// anything else is left to the metaschema to complain about.
func walkSchemas(schema any, pointer string, visit func(pointer string, schema any)) {
	obj, ok := schema.(map[string]any)
	if _, isBool := schema.(bool); !ok && !isBool {
		return
	}
	visit(pointer, schema)
	for _, key := range slices.Sorted(maps.Keys(obj)) {
		kind := applicators[key]
		if kind == 0 {
			continue
		}
		walkDirect(obj[key], pointer+"/"+escapeToken(key), kind, func(at string, sub any) {
			walkSchemas(sub, at, visit)
		})
	}
}

// walkDirect calls visit for each schema in the value of an applicator keyword,
// without going into it.
func walkDirect(value any, pointer string, kind applicator, visit func(pointer string, schema any)) {
	switch v := value.(type) {
	case []any:
		for i, sub := range v {
			visit(pointer+"/"+strconv.Itoa(i), sub)
		}
	case map[string]any:
		if kind != schemaMap {
			visit(pointer, v)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			visit(pointer+"/"+escapeToken(name), v[name])
		}
	default:
		visit(pointer, v)
	}
}

// Bounds on how schemas may be applied to one and the same value. A reasonable
// schema applies a handful; one made of definitions that each combine the next one
// twice needs no length to apply more than can ever be done. Each schema in a chain
// takes time in proportion to those before it, as the library looks for circles.
const (
	maxWork  = 10_000
	maxChain = 500
)

// inPlace are the applicators that apply their schemas to the value itself, not
// to a part of it.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// checkWork returns an error if some schema in the document multiplies itself
// beyond maxWork, or begins a chain longer than maxChain.
func checkWork(document any) error {
	w := worker{document: document, known: map[string]extent{}}
	var err error
	walkSchemas(document, "", func(pointer string, schema any) {
		switch e := w.extent(pointer, schema); {
		case err != nil:
		case e.work > maxWork:
			err = fmt.Errorf("jsonschema: the schema at %q applies more than %d schemas to one value", pointer, maxWork)
		case e.chain > maxChain:
			err = fmt.Errorf("jsonschema: the schema at %q applies a chain of more than %d schemas to one value", pointer, maxChain)
		}
	})
	return err
}

type worker struct {
	document any
	known    map[string]extent // by pointer
}

// An extent is how many schemas are applied to a value together with a schema, and
// how many of them lead to each other at most.
type extent struct{ work, chain int }

// extent counts a circle, which the validator detects, once.
func (w *worker) extent(pointer string, schema any) extent {
	if e, ok := w.known[pointer]; ok {
		return e
	}
	w.known[pointer] = extent{1, 1}
	obj, _ := schema.(map[string]any)
	e := extent{1, 1}
	add := func(at string, sub any) {
		more := w.extent(at, sub)
		e.work = min(e.work+more.work, maxWork+1)
		e.chain = max(e.chain, more.chain+1)
	}
	for _, key := range inPlace {
		if sub, ok := obj[key]; ok {
			walkDirect(sub, pointer+"/"+key, applicators[key], add)
		}
	}
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, _ := obj[key].(string)
		if at, ok := localRef(ref); ok {
			if target, found := lookup(w.document, splitPointer(at)); found {
				add(at, target)
			}
		}
	}
	w.known[pointer] = e
	return e
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// An applicator is the kind of a keyword whose value contains schemas.
type applicator int

const (
	oneSchema    applicator = iota + 1
	schemaList              // an array of schemas
	schemaMap               // an object with schemas
	schemaOrList            // "items" before 2020-12
)

// applicators are the keywords of all dialects whose values contain schemas.
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

// walkSchemas calls visit for schema, found at pointer, and for all of its subschemas,
// outer before inner, in a fixed order. A schema is a bool or an object. Anything else is
// ignored: the metaschema rejects it.
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

// walkDirect calls visit for each schema in the value of an applicator keyword, but not
// for their subschemas.
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

// Limits on the schemas applied to the same value. A reasonable schema applies a handful.
// A short one with definitions that each combine the next one twice could apply
// exponentially many. Each schema in a chain takes time proportional to those before it,
// because the library looks for cycles.
const (
	maxWork  = 10_000
	maxChain = 500
)

// inPlace are the applicators that apply their schemas to the value itself.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// checkWork returns an error if a schema in the document applies more than maxWork schemas
// to one value, or a chain longer than maxChain.
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

// An extent is the number of schemas applied to the same value as a schema, and the length
// of their longest chain.
type extent struct{ work, chain int }

// extent counts a cycle, which the validator detects, once.
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

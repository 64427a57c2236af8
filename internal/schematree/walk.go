// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package schematree

import (
	"maps"
	"reflect"
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

// Walk calls visit for schema, found at pointer, and for all of its subschemas,
// outer before inner, in a fixed order. A schema is a bool or an object. Anything else is
// ignored: the metaschema rejects it.
func Walk(schema any, pointer string, visit func(pointer string, schema any)) {
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
		direct(obj[key], pointer+"/"+Escape(key), kind, func(at string, sub any) {
			Walk(sub, at, visit)
		})
	}
}

// WalkReferenced calls visit for every schema of a document: for those that [Walk] visits,
// and for those at other places that a local reference names, with their subschemas. It
// calls visit once for each.
func WalkReferenced(document any, visit func(pointer string, schema any)) {
	seen := map[uintptr]bool{} // objects
	var targets []string
	each := func(pointer string, schema any) {
		obj, ok := schema.(map[string]any)
		if ok {
			at := reflect.ValueOf(obj).Pointer()
			if seen[at] {
				return
			}
			seen[at] = true
		}
		for _, key := range references {
			ref, _ := obj[key].(string)
			if target, ok := LocalRef(ref); ok {
				targets = append(targets, target)
			}
		}
		visit(pointer, schema)
	}
	Walk(document, "", each)
	for len(targets) > 0 {
		pointer := targets[0]
		targets = targets[1:]
		schema, _ := Lookup(document, Split(pointer))
		if obj, ok := schema.(map[string]any); ok && !seen[reflect.ValueOf(obj).Pointer()] {
			Walk(obj, pointer, each)
		}
	}
}

// references are the keywords that refer to a schema.
var references = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// direct calls visit for each schema in the value of an applicator keyword, but not
// for their subschemas.
func direct(value any, pointer string, kind applicator, visit func(pointer string, schema any)) {
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
			visit(pointer+"/"+Escape(name), v[name])
		}
	default:
		visit(pointer, v)
	}
}

// Direct calls visit for each schema in the value of the keyword, found at pointer, but not
// for their subschemas. It does nothing if the keyword does not contain schemas.
func Direct(keyword string, value any, pointer string, visit func(pointer string, schema any)) {
	if kind := applicators[keyword]; kind != 0 {
		direct(value, pointer, kind, visit)
	}
}

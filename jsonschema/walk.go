// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
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

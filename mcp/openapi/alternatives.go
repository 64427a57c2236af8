// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// alternatives returns the converted members of oneOf and anyOf, or nil if there are none.
// Each gets what stands beside the list.
func (c *converter) alternatives(obj map[string]any, depth int) (out []any) {
	some := list(obj, "oneOf")
	tags := c.tags(obj)
	if len(some) == 0 {
		some = list(obj, "anyOf")
	}
	for _, alternative := range some {
		if c.isFull() {
			break
		}
		inner, _ := alternative.(map[string]any)
		_, isRef := inner["$ref"]
		if len(object(obj, "properties")) > 0 && (!isRef || !c.d.cycles.isRecursive(text(inner, "$ref"))) {
			outer := maps.Clone(obj)
			for _, key := range []string{"oneOf", "anyOf", "description", "title", "discriminator"} {
				delete(outer, key)
			}
			inner = map[string]any{"allOf": []any{outer, alternative}}
		}
		converted := c.schema(inner, depth-1)
		if !c.output {
			c.discriminate(obj, tags, alternative, converted)
		}
		out = append(out, converted)
	}
	return out
}

// tags returns the values of the discriminator of a schema, sorted, by what they refer to.
func (c *converter) tags(obj map[string]any) map[string][]any {
	mapping := object(object(obj, "discriminator"), "mapping")
	if c.output || len(mapping) == 0 || !c.copies(perName*len(mapping)) {
		return nil
	}
	tags := map[string][]any{}
	for _, value := range slices.Sorted(maps.Keys(mapping)) {
		if ref, ok := mapping[value].(string); ok && c.copies(len(value)) {
			tags[ref] = append(tags[ref], value)
		}
	}
	return tags
}

// discriminate requires the value by which the discriminator of obj chooses an alternative.
func (c *converter) discriminate(obj map[string]any, tags map[string][]any, alternative any, converted map[string]any) {
	discriminator, ref := object(obj, "discriminator"), text(asObject(alternative), "$ref")
	tag, props := text(discriminator, "propertyName"), object(converted, "properties")
	if ref == "" || !isPortable(tag) || converted["type"] != "object" {
		return
	}
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	values := slices.Concat(tags[ref], tags[name])
	for _, v := range values {
		if !c.copies(lengthOf(v)) {
			return
		}
	}
	if len(values) == 0 {
		values = []any{name}
	}
	property := maps.Clone(object(props, tag))
	if property == nil {
		property = map[string]any{"type": "string"}
	}
	allowed, isEnum := property["enum"].([]any)
	if property["type"] != "string" || isEnum && slices.ContainsFunc(values, func(v any) bool { return !slices.Contains(allowed, v) }) {
		return // the alternative names other values
	}
	property["enum"], props[tag] = values, property
	required, _ := converted["required"].([]string)
	if !slices.Contains(required, tag) {
		converted["required"] = append(required, tag)
	}
}

func asObject(v any) map[string]any { obj, _ := v.(map[string]any); return obj }

// values converts enum and const. It returns the types that remain, and whether null is
// allowed.
func (c *converter) values(obj, out map[string]any, types []string, nullable bool) ([]string, bool) {
	enum := list(obj, "enum")
	if value, ok := obj["const"]; ok {
		enum = []any{value}
	}
	if len(enum) == 0 || c.output {
		return types, nullable
	}
	var kept []any
	kinds, own := map[string]bool{}, nullable
	for _, v := range enum {
		if !c.copies(lengthOf(v)) {
			return types, nullable
		}
		kind := kindOf(v)
		if kind == "integer" && slices.Contains(types, "number") {
			kind = "number"
		}
		if kind == "null" {
			nullable = true
		} else if len(types) == 0 || slices.Contains(types, kind) {
			kept = append(kept, v)
			kinds[kind] = true
		}
	}
	if len(kept) == 0 && len(types) == 1 { // such as YAML without quotes: [yes, 1]
		for _, v := range enum {
			if v, ok := asType(v, types[0]); ok {
				kept, kinds[types[0]] = append(kept, v), true
			}
		}
	}
	if kinds["object"] || kinds["array"] {
		return types, own
	}
	if len(kept) == 0 {
		return types, nullable
	}
	out["enum"] = kept
	return slices.Sorted(maps.Keys(kinds)), nullable
}

// lengthOf returns the bytes of a scalar, at least.
func lengthOf(v any) int {
	switch v := v.(type) {
	case string:
		return perName + len(v)
	case json.Number:
		return len(v)
	}
	return perName
}

// asType returns a scalar as a text, or a text as a number.
func asType(v any, kind string) (any, bool) {
	s, isText := v.(string)
	switch {
	case v == nil || !isScalar(v):
		return nil, false
	case kind == "string":
		return scalarText(v), true
	case !isText || !json.Valid([]byte(s)) || strings.Trim(s, "-+.eE0123456789") != "":
		return nil, false
	}
	return json.Number(s), kind == "number" || kind == kindOf(json.Number(s))
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

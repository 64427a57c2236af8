// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/go-psi/psi/internal/schematree"
)

// strict is OpenAI constraining the model to the schema, which hosts may request.
const strict = "OpenAI with strict"

// unsupported are keywords outside two subsets of JSON Schema, which reject or ignore them.
// The subset of OpenAI's strict mode is described in
// jsonschemaprofiles.unitvectorylabs.com/schemas/openai, after OpenAI's page about Structured
// Outputs. That of the field "parameters" of a Gemini FunctionDeclaration is the list in
// agent/gemini_schema.py of github.com/nousresearch/hermes-agent; the newer field
// "parametersJsonSchema" accepts more.
var unsupported = []string{
	"allOf", "contains", "dependencies", "dependentRequired", "dependentSchemas", "if", "not", "oneOf", "patternProperties",
	"propertyNames", "unevaluatedItems", "unevaluatedProperties",
}

// unknownToGemini are keywords without a field in the Schema of Gemini's "parameters", which
// then rejects the whole request (the messages of its API are in
// github.com/pizza-bot-app/pizza-bot/issues/62, github.com/ahmadrosid/nakama/issues/292 and
// github.com/taylorwilsdon/google_workspace_mcp/issues/1099), with what to write instead.
// Most hosts remove some of them.
var unknownToGemini = map[string]string{
	"const":            "use an enum with one value",
	"exclusiveMaximum": "use maximum",
	"exclusiveMinimum": "use minimum",
	"multipleOf":       "say it in the description, and check it in the tool",
	"prefixItems":      "use an object with a property for each item",
	"uniqueItems":      "say it in the description, and check it in the tool",
}

// subset reports keywords and values that are valid but not supported by all providers.
func (it item) subset(at string, tree any) {
	schematree.WalkReferenced(tree, func(pointer string, schema any) {
		pointer = at + pointer
		obj, _ := schema.(map[string]any)
		for _, key := range unsupported {
			if _, ok := obj[key]; ok {
				it.report(Warning, pointer+"/"+key, "unsupported-keyword", key+" is not in the subset of JSON Schema that every provider supports",
					"describe the rule in words, and check it in the tool", "Gemini", strict)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(unknownToGemini)) {
			if _, ok := obj[key]; ok {
				it.report(Warning, pointer+"/"+key, "unsupported-keyword", key+" is refused unless the host removes it", unknownToGemini[key], "Gemini")
			}
		}
		it.format(pointer, obj)
		it.enum(pointer, obj)
		it.union(pointer, obj)
	})
}

// format reports formats that Gemini rejects (the message of its API is in
// github.com/google-gemini/gemini-cli/issues/2237) and that most hosts remove for it.
func (it item) format(pointer string, obj map[string]any) {
	format, ok := obj["format"].(string)
	if ok && obj["type"] == "string" && format != "date-time" && format != "enum" {
		it.report(Note, pointer+"/format", "format", fmt.Sprintf("the format %q of a string is removed by hosts, or refused", format),
			"say it in the description, too", "Gemini")
	}
}

// enum reports values for which Gemini rejects an enum (the messages of its API are in
// github.com/nanbingxyz/5ire/issues/218 and
// github.com/sbroenne/mcp-server-excel/issues/607), and types for which it does
// (github.com/decolua/9router/pull/380).
func (it item) enum(pointer string, obj map[string]any) {
	values, _ := obj["enum"].([]any)
	if typ := obj["type"]; typ == "array" || typ == "object" {
		if _, ok := obj["enum"]; ok {
			it.report(Warning, pointer+"/enum", "enum-value", fmt.Sprintf("an enum is for strings, and not for an %v", typ), "give the items or members an enum", "Gemini")
			return
		}
	}
	isOther := func(v any) bool { _, isString := v.(string); return !isString && v != nil }
	if slices.ContainsFunc(values, isOther) {
		it.report(Warning, pointer+"/enum", "enum-value", "an enum has a value that is not a string", "use strings, or minimum and maximum", "Gemini")
	}
	if slices.Contains(values, any("")) {
		it.report(Warning, pointer+"/enum", "enum-value", "an enum has the empty string", "leave the argument out of required instead", "Gemini")
	}
}

// union reports several types. Gemini has one type and a flag for null, and what hosts make
// of a list is rejected (github.com/github/copilot-cli/issues/4623,
// github.com/anomalyco/opencode/issues/48073 and
// github.com/taylorwilsdon/google_workspace_mcp/issues/1099). Cursor rejects the arguments
// (github.com/cursor/cursor/issues/3778).
func (it item) union(pointer string, obj map[string]any) {
	const advice = "leave an optional argument out of required instead of allowing null, and give every other one a single type"
	if types, _ := obj["type"].([]any); len(types) > 1 {
		it.report(Warning, pointer+"/type", "several-types", fmt.Sprintf("the argument has %d types", len(types)), advice, "Gemini", "Cursor")
	}
	list, _ := obj["anyOf"].([]any)
	isNull := func(v any) bool { sub, _ := v.(map[string]any); return sub["type"] == "null" }
	if slices.ContainsFunc(list, isNull) {
		it.report(Warning, pointer+"/anyOf", "several-types", "the argument allows null", advice, "Gemini")
	}
}

// Limits of OpenAI's strict mode, from the same description.
const (
	maxDepth         = 10      // nested objects
	maxProperties    = 5_000   // of all objects together
	maxValues        = 1_000   // of all enums together
	maxLargeEnum     = 250     // values of one enum, beyond which their length is limited
	maxEnumLength    = 15_000  // of the values of a large enum together, in characters
	maxStringsLength = 120_000 // of names of properties and definitions, and of enum and const values
)

// A size holds the counts to compare with the limits.
type size struct{ properties, values, length int }

func (it item) limits(at string, tree any) {
	var s size
	schematree.WalkReferenced(tree, func(pointer string, schema any) {
		obj, _ := schema.(map[string]any)
		for _, key := range []string{"properties", "$defs"} {
			members, _ := obj[key].(map[string]any)
			for name := range members {
				s.length += len(name)
			}
		}
		properties, _ := obj["properties"].(map[string]any)
		s.properties += len(properties)
		values, _ := obj["enum"].([]any)
		length := 0
		for _, v := range values {
			length += lengthOf(v)
		}
		s.values += len(values)
		s.length += length + lengthOf(obj["const"])
		if len(values) > maxLargeEnum && length > maxEnumLength {
			it.tooLarge(at+pointer+"/enum", fmt.Sprintf("the enum has %d values of %d characters", len(values), length), maxEnumLength)
		}
	})
	for _, count := range []struct {
		what      string
		got, most int
	}{
		{"levels of objects", depth(tree), maxDepth},
		{"properties", s.properties, maxProperties},
		{"enum values", s.values, maxValues},
		{"characters in names and values", s.length, maxStringsLength},
	} {
		if count.got > count.most {
			it.tooLarge(at, fmt.Sprintf("the schema has %d %s", count.got, count.what), count.most)
		}
	}
}

func (it item) tooLarge(at, message string, most int) {
	it.report(Warning, at, "schema-size", fmt.Sprintf("%s; %d are accepted", message, most), "offer several smaller tools", strict)
}

func lengthOf(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case json.Number:
		return len(v)
	}
	return 0
}

// depth returns how many objects with properties are nested in each other. The target of a
// reference counts where it is defined.
func depth(schema any) int {
	obj, _ := schema.(map[string]any)
	deepest := 0
	for key, value := range obj {
		schematree.Direct(key, value, "", func(_ string, sub any) {
			deepest = max(deepest, depth(sub))
		})
	}
	if _, ok := obj["properties"]; ok {
		return deepest + 1
	}
	return deepest
}

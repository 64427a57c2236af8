// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/ascii"
)

type violation struct {
	pointer string
	rule    Rule
	message string
}

// violations returns everything that breaks any rule.
func violations(raw []byte) []violation {
	opts := (*Options)(nil).withDefaults()
	compiled, err := Compile(raw, nil)
	if err != nil {
		return []violation{{rule: RuleInvalid, message: strings.TrimPrefix(err.Error(), "jsonschema: ")}}
	}
	doc, terr := readTree(raw, opts.MaxDepth, opts.MaxNodes)
	if terr != nil {
		return []violation{{rule: RuleInvalid, message: terr.Error()}}
	}
	l := linter{document: doc}
	for _, pointer := range compiled.Unchecked() {
		l.reportf(pointer, RuleUncheckedRegexp, "a regular expression that Go cannot compile is not checked")
	}
	l.root()
	walkSchemas(doc, "", l.node)
	return l.found
}

type linter struct {
	document any
	found    []violation
}

func (l *linter) reportf(pointer string, rule Rule, format string, args ...any) {
	l.found = append(l.found, violation{pointer, rule, fmt.Sprintf(format, args...)})
}

func (l *linter) root() {
	obj, _ := l.document.(map[string]any)
	if obj["type"] != "object" {
		l.reportf("", RuleRootObject, `the type of the root must be "object"`)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not", "enum"} {
		if _, ok := obj[key]; ok {
			l.reportf("/"+key, RuleRootCombinator, "%s is not allowed at the root; use it inside a property", key)
		}
	}
}

// node checks one schema by itself.
func (l *linter) node(pointer string, schema any) {
	obj, ok := schema.(map[string]any)
	if !ok {
		l.untyped(pointer, nil)
		return
	}
	types := typesOf(obj)
	l.references(pointer, obj)
	l.untyped(pointer, obj)
	if slices.Contains(types, "object") && obj["properties"] == nil {
		l.reportf(pointer, RuleProperties, `an object needs "properties", if only {}`)
	}
	if slices.Contains(types, "array") && obj["items"] == nil {
		l.reportf(pointer, RuleItems, `an array needs "items"`)
	}
	if list, _ := obj["enum"].([]any); slices.Contains(list, nil) {
		l.reportf(pointer+"/enum", RuleNullInEnum, `an enum must not contain null; use "anyOf" with {"type":"null"}`)
	}
	l.members(pointer, obj)
}

func typesOf(obj map[string]any) []string {
	if t, ok := obj["type"].(string); ok {
		return []string{t}
	}
	list, _ := obj["type"].([]any)
	return stringsOf(list)
}

// isPortable reports whether every model provider accepts the name of a property.
func isPortable(name string) bool { return ascii.IsName(name, 64, "_.-") }

func (l *linter) members(pointer string, obj map[string]any) {
	props, declared := obj["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !isPortable(name) {
			l.reportf(pointer+"/properties/"+escapeToken(name), RulePropertyName,
				"a property name must have 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'")
		}
	}
	required, _ := obj["required"].([]any)
	for _, name := range stringsOf(required) {
		if _, ok := props[name]; !ok && declared {
			l.reportf(pointer+"/required", RuleRequired, "%s is required but not among the properties", quote(name))
		}
	}
}

// untyped finds nodes that do not say, themselves or through what they combine,
// of which type a value is. obj is nil for a boolean schema.
func (l *linter) untyped(pointer string, obj map[string]any) {
	for _, key := range []string{"type", "$ref", "anyOf", "oneOf", "allOf"} {
		if _, ok := obj[key]; ok {
			return
		}
	}
	parent, key := l.parent(pointer)
	switch {
	case obj == nil && slices.Contains([]string{"additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems"}, key):
		return // true and false are the usual values
	case key == "not" || key == "if" || key == "then" || key == "else":
		return // they restrict what the outer node has typed
	case key == "items" && len(typesOf(parent)) >= everyType:
		return
	}
	l.reportf(pointer, RuleUntyped, `a node needs a "type"`)
}

// everyType is how many types it takes to allow any value: integers are numbers.
const everyType = 6

// parent returns the schema around the one at pointer, and the keyword between.
func (l *linter) parent(pointer string) (map[string]any, string) {
	tokens := splitPointer(pointer)
	if len(tokens) == 0 {
		return nil, ""
	}
	last := len(tokens) - 1
	v, _ := lookup(l.document, tokens[:last])
	obj, _ := v.(map[string]any)
	return obj, tokens[last]
}

func (l *linter) references(pointer string, obj map[string]any) {
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, ok := obj[key].(string)
		if !ok {
			continue
		}
		at := pointer + "/" + key
		target, local := localRef(ref)
		tokens := splitPointer(target)
		switch {
		case !local || len(tokens) != 2 || tokens[0] != "$defs":
			l.reportf(at, RuleReferencePlace, `a reference must have the form "#/$defs/Name"`)
		case !l.recursive(target):
			l.reportf(at, RuleReference, "a reference that is not recursive should be replaced by what it refers to")
		}
	}
}

// recursive reports whether the definition at pointer leads back to itself.
func (l *linter) recursive(pointer string) bool {
	seen := map[string]bool{}
	var reaches func(from string) bool
	reaches = func(from string) bool {
		schema, ok := lookup(l.document, splitPointer(from))
		if !ok || seen[from] {
			return false
		}
		seen[from] = true
		found := false
		walkSchemas(schema, from, func(_ string, inner any) {
			obj, _ := inner.(map[string]any)
			ref, _ := obj["$ref"].(string)
			to, local := localRef(ref)
			found = found || local && (to == pointer || reaches(to))
		})
		return found
	}
	return reaches(pointer)
}

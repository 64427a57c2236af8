// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/schematree"
)

// A Profile is the subset of JSON Schema that a family of clients accepts in the input
// schema of a tool. It is named after the provider of their models.
type Profile string

// The profiles.
const (
	OpenAI    Profile = "openai"
	Anthropic Profile = "anthropic"
	Gemini    Profile = "gemini"
	VSCode    Profile = "vscode"   // VS Code and the Copilot clients
	Portable  Profile = "portable" // every client: the union of the profiles above

	// Inspector is for the output schema of a tool. Its only rule is RuleNullable, for what
	// the MCP Inspector calls less portable. It is not part of Portable.
	Inspector Profile = "inspector"
)

// A Rule is the name of a check. See [Lint].
type Rule string

// The rules, with the clients that reject schemas which violate them.
const (
	RuleInvalid         Rule = "invalid"           // all: not a schema at all
	RuleRootObject      Rule = "root-object"       // all: the root's type is not "object"
	RuleRootCombinator  Rule = "root-combinator"   // Anthropic, OpenAI: allOf, anyOf, oneOf, not or enum at the root
	RuleReference       Rule = "reference"         // Gemini, VS Code: a $ref that is not needed for recursion
	RuleReferencePlace  Rule = "reference-place"   // all: a reference to anything but #/$defs/Name
	RuleProperties      Rule = "object-properties" // OpenAI, VS Code: an object without "properties"
	RuleRequired        Rule = "required"          // OpenAI, Gemini: "required" names an unknown property
	RuleItems           Rule = "array-items"       // OpenAI, Gemini, VS Code: an array without "items"
	RuleUntyped         Rule = "untyped"           // Anthropic: a node without "type"
	RuleNullInEnum      Rule = "null-in-enum"      // Gemini: an enum that contains null
	RulePropertyName    Rule = "property-name"     // Anthropic: a property name not of 1 to 64 of A-Z a-z 0-9 _ . -
	RuleNullable        Rule = "nullable"          // Inspector: a nullable type
	RuleUncheckedRegexp Rule = "regexp"            // all: a regular expression beyond RE2, which Validate ignores
)

// refusedBy maps a rule to the profiles that enforce it. All profiles except Inspector
// enforce the other rules.
var refusedBy = map[Rule][]Profile{
	RuleRootCombinator: {Anthropic, OpenAI},
	RuleReference:      {Gemini, VSCode},
	RuleProperties:     {OpenAI, VSCode},
	RuleRequired:       {OpenAI, Gemini},
	RuleItems:          {OpenAI, Gemini, VSCode},
	RuleUntyped:        {Anthropic},
	RuleNullInEnum:     {Gemini},
	RulePropertyName:   {Anthropic},
	RuleNullable:       {Inspector},
}

// A Finding is a place in a schema that the clients of a profile reject or mishandle.
type Finding struct {
	Profile Profile // the requested profile
	Pointer string  // JSON pointer into the schema
	Rule    Rule
	Message string // what is wrong and what to write instead
}

// String returns the finding as one line.
func (f Finding) String() string {
	at := f.Pointer
	if at == "" {
		at = "(root)"
	}
	return fmt.Sprintf("%s: %s [%s, %s]", at, f.Message, f.Profile, f.Rule)
}

// Lint checks the input schema of a tool for anything that clients reject, even if it is
// valid JSON Schema. If a model provider rejects one schema, its clients usually fail the
// whole request, and with it every tool of every server.
//
// Without profiles, Lint checks [Portable]. The result is sorted by pointer, rule and
// profile, and is nil if there are no findings. A schema that [For] infers from Go types
// alone is written to pass Portable; what tags and methods add may not.
//
// Two things are accepted because there is no alternative: a reference that makes a
// schema recursive, and items without a type in a node whose type lists every JSON type,
// which is how For writes "any value".
func Lint(raw []byte, profiles ...Profile) []Finding {
	if len(profiles) == 0 {
		profiles = []Profile{Portable}
	}
	var findings []Finding
	for _, v := range violations(raw) {
		for _, p := range profiles {
			if p.has(v.rule) {
				findings = append(findings, Finding{Profile: p, Pointer: v.pointer, Rule: v.rule, Message: v.message})
			}
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			strings.Compare(a.Pointer, b.Pointer),
			strings.Compare(string(a.Rule), string(b.Rule)),
			strings.Compare(string(a.Profile), string(b.Profile)))
	})
	return slices.Compact(findings)
}

func (p Profile) has(r Rule) bool {
	by, some := refusedBy[r]
	if p == Inspector || r == RuleNullable {
		return p == Inspector && r == RuleNullable
	}
	return !some || p == Portable || slices.Contains(by, p)
}

type violation struct {
	pointer string
	rule    Rule
	message string
}

// violations returns the violations of all rules.
func violations(raw []byte) []violation {
	compiled, err := Compile(raw, nil)
	if err != nil {
		return []violation{{rule: RuleInvalid, message: strings.TrimPrefix(err.Error(), "jsonschema: ")}}
	}
	l := linter{document: compiled.document}
	for _, pointer := range compiled.Unchecked() {
		tokens := schematree.Split(pointer)
		if last := len(tokens) - 1; tokens[last] != "pattern" && (last == 0 || tokens[last-1] != "patternProperties") {
			continue // relaxed because of a format or of a regular expression that is reported, too
		}
		l.reportf(pointer, RuleUncheckedRegexp, "a regular expression that Go cannot compile is not checked")
	}
	l.root()
	schematree.WalkReferenced(l.document, l.node)
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

// node checks one schema without its subschemas.
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
	if len(types) == 2 && slices.Contains(types, "null") {
		l.reportf(pointer+"/type", RuleNullable, "a type that allows null; add omitzero to the field, so that nil is left out, or list values instead of pointers")
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
func isPortable(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"0123456789_.-") == ""
}

func (l *linter) members(pointer string, obj map[string]any) {
	props, declared := obj["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !isPortable(name) {
			l.reportf(pointer+"/properties/"+schematree.Escape(name), RulePropertyName,
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

// untyped reports a schema that states no type, neither itself nor in the schemas that it
// combines or refers to. obj is nil for a boolean schema.
func (l *linter) untyped(pointer string, obj map[string]any) {
	for _, key := range []string{"type", "$ref", "anyOf", "oneOf", "allOf"} {
		if _, ok := obj[key]; ok {
			return
		}
	}
	parent, key := l.parent(pointer)
	switch {
	case obj == nil && slices.Contains([]string{"additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems"}, key):
		return // true and false are common values
	case key == "not" || key == "if" || key == "then" || key == "else":
		return // it restricts the outer schema, which has the type
	case key == "items" && len(typesOf(parent)) >= everyType:
		return
	}
	l.reportf(pointer, RuleUntyped, `a node needs a "type"`)
}

// everyType is the number of types that allow any value. Integers are numbers.
const everyType = 6

// parent returns the object that contains the schema at pointer, and its key in the object.
func (l *linter) parent(pointer string) (map[string]any, string) {
	tokens := schematree.Split(pointer)
	if len(tokens) == 0 {
		return nil, ""
	}
	last := len(tokens) - 1
	v, _ := schematree.Lookup(l.document, tokens[:last])
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
		target, local := schematree.LocalRef(ref)
		tokens := schematree.Split(target)
		switch {
		case !local || len(tokens) != 2 || tokens[0] != "$defs":
			l.reportf(at, RuleReferencePlace, `a reference must have the form "#/$defs/Name"`)
		case !l.recursive(target):
			l.reportf(at, RuleReference, "a reference that is not recursive should be replaced by what it refers to")
		}
	}
}

// recursive reports whether the definition at pointer refers to itself.
func (l *linter) recursive(pointer string) bool {
	seen := map[string]bool{}
	var reaches func(from string) bool
	reaches = func(from string) bool {
		schema, ok := schematree.Lookup(l.document, schematree.Split(from))
		if !ok || seen[from] {
			return false
		}
		seen[from] = true
		found := false
		schematree.Walk(schema, from, func(_ string, inner any) {
			obj, _ := inner.(map[string]any)
			ref, _ := obj["$ref"].(string)
			to, local := schematree.LocalRef(ref)
			found = found || local && (to == pointer || reaches(to))
		})
		return found
	}
	return reaches(pointer)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Profile is what a family of clients, named after the provider of their
// models, accepts of JSON Schema in the input schema of a tool.
type Profile string

// The profiles.
const (
	OpenAI    Profile = "openai"
	Anthropic Profile = "anthropic"
	Gemini    Profile = "gemini"
	VSCode    Profile = "vscode"   // VS Code and the Copilot clients
	Portable  Profile = "portable" // every client: the union of all profiles
)

// A Rule names what a schema must not do. See [Lint] for what each means.
type Rule string

// The rules, with the clients that refuse what breaks them.
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
	RuleUncheckedRegexp Rule = "regexp"            // all: a regular expression beyond RE2, which Validate does not check either
)

// refusedBy says which clients have a rule; no entry means all of them.
var refusedBy = map[Rule][]Profile{
	RuleRootCombinator: {Anthropic, OpenAI},
	RuleReference:      {Gemini, VSCode},
	RuleProperties:     {OpenAI, VSCode},
	RuleRequired:       {OpenAI, Gemini},
	RuleItems:          {OpenAI, Gemini, VSCode},
	RuleUntyped:        {Anthropic},
	RuleNullInEnum:     {Gemini},
	RulePropertyName:   {Anthropic},
}

// A Finding is one place in a schema that the clients of a profile refuse, or
// are known to mishandle.
type Finding struct {
	Profile Profile // the profile asked for
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

// Lint checks the input schema of a tool against what clients accept beyond
// JSON Schema itself. It matters because a client usually fails the whole
// request over one schema that its provider refuses, and with it every tool of
// every server.
//
// Without profiles Lint checks [Portable]. The result is sorted by pointer, rule
// and profile, and nil if nothing was found. Nothing that [For] infers from Go
// types alone is ever found in Portable; what tags and methods add may be.
//
// Two things are let pass because nothing could replace them: a reference that
// makes a schema recursive, and elements without a type inside a node whose type
// lists every JSON type, which is how For writes "any value".
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
	return !some || p == Portable || slices.Contains(by, p)
}

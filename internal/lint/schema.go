// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/schematree"
	"github.com/go-psi/psi/jsonschema"
)

// providers maps the profiles of package jsonschema to the names of providers.
var providers = map[jsonschema.Profile]string{
	jsonschema.Anthropic: "Anthropic", jsonschema.Gemini: "Gemini", jsonschema.OpenAI: "OpenAI", jsonschema.VSCode: "VS Code",
}

// A remedy is the severity of a violation of a rule of package jsonschema, and what to do.
type remedy struct {
	severity Severity
	advice   string
}

var remedies = map[jsonschema.Rule]remedy{
	jsonschema.RuleInvalid:         {Error, "mend the schema"},
	jsonschema.RuleRootObject:      {Error, "make it an object, and a property of what it is now"},
	jsonschema.RuleRootCombinator:  {Error, "describe the alternatives in a property, or offer a tool for each"},
	jsonschema.RuleReference:       {Warning, "write the definition out where it is used"},
	jsonschema.RuleReferencePlace:  {Error, "write the definition out where it is used, or move it to $defs at the root"},
	jsonschema.RuleProperties:      {Error, "add \"properties\":{}"},
	jsonschema.RuleRequired:        {Error, "add the property, or remove its name from required"},
	jsonschema.RuleItems:           {Error, "add items"},
	jsonschema.RuleUntyped:         {Warning, "add a type"},
	jsonschema.RuleNullInEnum:      {Error, "leave the argument out of required instead"},
	jsonschema.RulePropertyName:    {Error, "rename the property"},
	jsonschema.RuleUncheckedRegexp: {Warning, "use no lookaround and no backreferences"},
	jsonschema.RuleNullable:        {Note, "leave the member out of required instead"},
}

func (it item) inputSchema(raw json.RawMessage) {
	const at = "/inputSchema"
	if len(raw) == 0 {
		it.report(Error, at, "input-schema-missing", "there is no inputSchema", "add {\"type\":\"object\",\"properties\":{}}")
		return
	}
	if !it.schema(at, raw, slices.Collect(maps.Keys(providers))...) {
		return
	}
	tree := decode(raw)
	it.arguments(at, tree)
	it.subset(at, tree)
	it.limits(at, tree)
}

func (it item) outputSchema(raw json.RawMessage) {
	const at = "/outputSchema"
	if len(raw) == 0 {
		return
	}
	if _, err := jsonschema.Compile(raw, nil); err != nil { // not reported by Lint here
		it.report(Error, at, string(jsonschema.RuleInvalid), strings.TrimPrefix(err.Error(), "jsonschema: "), remedies[jsonschema.RuleInvalid].advice)
		return
	}
	it.schema(at, raw, jsonschema.Inspector)
	tree := decode(raw)
	it.schemaTexts(at, tree)
	if obj, _ := tree.(map[string]any); obj["type"] != "object" {
		// Revisions before 2026-07-28 require this type, and the TypeScript SDK checks it
		// (github.com/modelcontextprotocol/typescript-sdk/issues/1149).
		it.report(Warning, at, "output-root-object", "the type of the root is not \"object\"; clients of older revisions refuse the whole list of tools for it",
			"make it an object, and a member of what it is now", "TypeScript SDK 1.x")
	}
}

// schema reports what package jsonschema finds for the profiles, and returns whether raw is
// a valid schema.
func (it item) schema(at string, raw json.RawMessage, profiles ...jsonschema.Profile) bool {
	type key struct{ pointer, rule, message string }
	var order []key
	clients := map[key][]string{}
	for _, f := range jsonschema.Lint(raw, profiles...) {
		k := key{f.Pointer, string(f.Rule), f.Message}
		if _, ok := clients[k]; !ok {
			order = append(order, k)
		}
		clients[k] = append(clients[k], providers[f.Profile])
	}
	valid := true
	for _, k := range order {
		by := slices.Sorted(slices.Values(clients[k]))
		if len(by) == len(profiles) {
			by = nil
		}
		r := remedies[jsonschema.Rule(k.rule)]
		if k.rule == string(jsonschema.RuleProperties) && k.pointer != "" {
			r.severity = Warning // OpenAI's message is about context=(), the root
		}
		it.report(r.severity, at+k.pointer, k.rule, k.message, r.advice, by...)
		valid = valid && k.rule != string(jsonschema.RuleInvalid)
	}
	return valid
}

// decode returns the tree of a schema that package jsonschema accepts.
func decode(raw json.RawMessage) (tree any) {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil {
		return nil
	}
	return tree
}

// arguments reports arguments without a description, and hidden text in descriptions.
func (it item) arguments(at string, tree any) {
	it.schemaTexts(at, tree)
	root, _ := tree.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		schema, _ := properties[name].(map[string]any)
		if text, _ := schema["description"].(string); strings.TrimSpace(text) == "" {
			it.report(Note, at+"/properties/"+schematree.Escape(name), "argument-description", fmt.Sprintf("the argument %q has no description", name),
				"say what it means, its unit, and an example")
		}
	}
}

// schemaTexts reports hidden text in a schema.
func (it item) schemaTexts(at string, tree any) {
	schematree.WalkReferenced(tree, func(pointer string, schema any) {
		obj, _ := schema.(map[string]any)
		for _, key := range []string{"title", "description", "$comment"} {
			text, _ := obj[key].(string)
			it.hidden(at+pointer+"/"+key, text)
		}
	})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

func TestLint(t *testing.T) {
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	tests := []struct {
		schema   string
		pointer  string
		rule     jsonschema.Rule
		profiles []jsonschema.Profile // that reject it; nil for all
	}{
		{`{"type":"strin"}`, "", jsonschema.RuleInvalid, nil},
		{`[]`, "", jsonschema.RuleInvalid, nil},
		{`{"type":"object","required":null}`, "", jsonschema.RuleInvalid, nil},
		{`{"type":"string"}`, "", jsonschema.RuleRootObject, nil},
		{`{"type":"object","properties":{},"anyOf":[{"type":"object","properties":{}}]}`, "/anyOf", jsonschema.RuleRootCombinator,
			[]jsonschema.Profile{jsonschema.Anthropic, jsonschema.OpenAI}},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`, "/properties/a/$ref", jsonschema.RuleReference,
			[]jsonschema.Profile{jsonschema.Gemini, jsonschema.VSCode}},
		{`{"type":"object","properties":{"a":{"$ref":"#"}}}`, "/properties/a/$ref", jsonschema.RuleReferencePlace, nil},
		{`{"type":"object"}`, "", jsonschema.RuleProperties, []jsonschema.Profile{jsonschema.OpenAI, jsonschema.VSCode}},
		{object(`"a":{"type":["object","null"]}`), "/properties/a", jsonschema.RuleProperties, []jsonschema.Profile{jsonschema.OpenAI, jsonschema.VSCode}},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`, "/required", jsonschema.RuleRequired,
			[]jsonschema.Profile{jsonschema.OpenAI, jsonschema.Gemini}},
		{object(`"a":{"type":"array"}`), "/properties/a", jsonschema.RuleItems,
			[]jsonschema.Profile{jsonschema.OpenAI, jsonschema.Gemini, jsonschema.VSCode}},
		{object(`"a":{}`), "/properties/a", jsonschema.RuleUntyped, []jsonschema.Profile{jsonschema.Anthropic}},
		{object(`"a":true`), "/properties/a", jsonschema.RuleUntyped, []jsonschema.Profile{jsonschema.Anthropic}},
		{object(`"a":{"type":"array","items":{}}`), "/properties/a/items", jsonschema.RuleUntyped, []jsonschema.Profile{jsonschema.Anthropic}},
		{object(`"a":{"type":["string","null"],"enum":["x",null]}`), "/properties/a/enum", jsonschema.RuleNullInEnum, []jsonschema.Profile{jsonschema.Gemini}},
		{object(`"a b":{"type":"string"}`), "/properties/a b", jsonschema.RulePropertyName, []jsonschema.Profile{jsonschema.Anthropic}},
		{object(`"` + strings.Repeat("x", 65) + `":{"type":"string"}`), "/properties/" + strings.Repeat("x", 65), jsonschema.RulePropertyName,
			[]jsonschema.Profile{jsonschema.Anthropic}},
		{object(`"a":{"type":"string","pattern":"(?=x)"}`), "/properties/a/pattern", jsonschema.RuleUncheckedRegexp, nil},
	}
	all := []jsonschema.Profile{jsonschema.OpenAI, jsonschema.Anthropic, jsonschema.Gemini, jsonschema.VSCode}
	for _, tt := range tests {
		findings := jsonschema.Lint([]byte(tt.schema))
		if len(findings) != 1 || findings[0].Pointer != tt.pointer || findings[0].Rule != tt.rule || findings[0].Profile != jsonschema.Portable {
			t.Errorf("%s: got %v, want %s at %q", tt.schema, findings, tt.rule, tt.pointer)
		}
		for _, p := range all {
			refuses := tt.profiles == nil || slices.Contains(tt.profiles, p)
			if got := len(jsonschema.Lint([]byte(tt.schema), p)); (got > 0) != refuses {
				t.Errorf("%s: %d findings for %s", tt.schema, got, p)
			}
		}
	}
}

func TestLintAccepts(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"array","items":{"$ref":"#/$defs/B"}},"B":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}}}`,
	} {
		if findings := jsonschema.Lint([]byte(schema)); findings != nil {
			t.Errorf("%s: %v", schema, findings)
		}
	}
}

func TestLintSeveralProfiles(t *testing.T) {
	findings := jsonschema.Lint([]byte(`{"type":"object"}`), jsonschema.VSCode, jsonschema.OpenAI, jsonschema.OpenAI, jsonschema.Gemini)
	if len(findings) != 2 || findings[0].Profile != jsonschema.OpenAI || findings[1].Profile != jsonschema.VSCode {
		t.Errorf("got %v", findings)
	}
}

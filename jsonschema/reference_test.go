// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// A reference may name any place in the document (RFC 6901), not only one below $defs. The
// schema there is checked like any other.
func TestFindingR1PatternsBehindAnyReference(t *testing.T) {
	const lower = `{"type":"string","pattern":"^[a-z]+$","patternProperties":{}}`
	for name, test := range map[string]struct{ schema, valid, invalid string }{
		"OpenAPI": {
			`{"properties":{"a":{"$ref":"#/components/schemas/lower"}},"components":{"schemas":{"lower":` + lower + `}}}`,
			`{"a":"x"}`, `{"a":"../X"}`},
		"below a group of definitions": {
			`{"properties":{"a":{"$ref":"#/definitions/v/lower"}},"definitions":{"v":{"lower":` + lower + `}}}`,
			`{"a":"x"}`, `{"a":"X"}`},
		"two hops": {
			`{"$ref":"#/x/0","x":[{"items":{"$ref":"#/y/a~1b"}}],"y":{"a/b":` + lower + `}}`,
			`["x"]`, `["X"]`},
		"escaped": {
			`{"$ref":"#/x/%25a","x":{"%a":` + lower + `}}`,
			`"x"`, `"X"`},
		"relative to an $id": {
			`{"$id":"https://example.com/s","$ref":"s#/x/a","x":{"a":` + lower + `}}`,
			`"x"`, `"X"`},
		"keys": {
			`{"$ref":"#/x/a","x":{"a":{"patternProperties":{"^[a-z]+$":{"type":"string"}},"additionalProperties":false}}}`,
			`{"x":"y"}`, `{"X":"y"}`},
		"alternatives": {
			`{"oneOf":[{"$ref":"#/x/v/one"},{"$ref":"#/x/v/two"}],"x":{"v":{"one":{"pattern":"^1\\."},"two":{"pattern":"^2\\."}}}}`,
			`"2.1"`, `"3.1"`},
	} {
		s := compile(t, test.schema, nil)
		if err := s.Validate(t.Context(), []byte(test.valid)); err != nil {
			t.Errorf("%s: %s is valid, but: %v", name, test.valid, err)
		}
		if err := s.Validate(t.Context(), []byte(test.invalid)); err == nil {
			t.Errorf("%s: %s is accepted", name, test.invalid)
		}
		if got := s.Unchecked(); got != nil {
			t.Errorf("%s: unchecked: %q", name, got)
		}
	}
}

// What cannot be checked behind such a reference is listed; defaults there are checked, and
// so is what clients reject.
func TestFindingR1UncheckedAndLintAndDefaultsBehindAnyReference(t *testing.T) {
	schema := func(there string) string {
		return `{"type":"object","properties":{"a":{"$ref":"#/components/schemas/A"}},"components":{"schemas":{"A":` + there + `}}}`
	}
	lookahead := schema(`{"type":"string","pattern":"^(?!x)"}`)
	if got, want := compile(t, lookahead, nil).Unchecked(), []string{"/components/schemas/A/pattern"}; !slices.Equal(got, want) {
		t.Errorf("unchecked: %q, want %q", got, want)
	}
	for rule, there := range map[jsonschema.Rule]string{
		jsonschema.RuleUncheckedRegexp: `{"type":"string","pattern":"^(?!x)"}`,
		jsonschema.RuleItems:           `{"type":"array"}`,
	} {
		found := jsonschema.Lint([]byte(schema(there)))
		if !slices.ContainsFunc(found, func(f jsonschema.Finding) bool {
			return f.Rule == rule && strings.HasPrefix(f.Pointer, "/components/schemas/A")
		}) {
			t.Errorf("%s: %v, want %s", there, found, rule)
		}
	}
	err := compile(t, schema(`{"type":"string","default":7}`), nil).CheckDefaults()
	if err == nil || !strings.Contains(err.Error(), "/components/schemas/A") {
		t.Errorf("a default that does not fit: %v", err)
	}
	own := compile(t, `{"properties":{"a":{"$ref":"#/x/A","default":7}},"x":{"A":{"type":"string"}}}`, nil)
	if err := own.CheckDefaults(); err == nil {
		t.Error("a default that does not fit what it refers to is accepted")
	}
}

// The limits hold behind such a reference, too.
func TestFindingR1LimitsBehindAnyReference(t *testing.T) {
	for want, there := range map[string]string{
		"instructions": `{"pattern":"` + strings.Repeat("(a{1000}b{1000})", 60) + `"}`,
		"schemas":      `{"properties":{"a":{"$ref":"#/x/1"}}},` + doublings("#/x/", 20),
	} {
		_, err := jsonschema.Compile([]byte(`{"$ref":"#/x/0","x":[`+there+`]}`), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}

// doublings returns n schemas of a list, each of which refers twice to the next one. The
// first has index 1.
func doublings(list string, n int) string {
	var all strings.Builder
	for i := range n {
		ref := `{"$ref":"` + list + strconv.Itoa(i+2) + `"}`
		all.WriteString(`{"allOf":[` + ref + `,` + ref + `]},`)
	}
	return all.String() + `{}`
}

// A regular expression that Go cannot compile never makes a valid value invalid. Where it
// would, because the keyword above it excludes or counts what matches, that keyword is
// relaxed, and listed.
func TestFindingR7WhatIsUncheckedRejectsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		schema  string
		listed  []string
		valid   []string
		invalid []string
	}{
		"oneOf": {
			`{"oneOf":[{"type":"string","pattern":"^(?!http)"},{"type":"string","pattern":"^http"}]}`,
			[]string{"/oneOf", "/oneOf/0/pattern"}, []string{`"http://x"`, `"x"`}, []string{`7`}},
		"oneOf next to anyOf": {
			`{"oneOf":[{"pattern":"^(?!a)"},{"pattern":"^a"}],"anyOf":[{"type":"string"},{"type":"null"}]}`,
			[]string{"/oneOf", "/oneOf/0/pattern"}, []string{`"a"`}, []string{`7`}},
		"not": {
			`{"type":"string","not":{"pattern":"^(?=x)"}}`,
			[]string{"/not", "/not/pattern"}, []string{`"y"`}, []string{`7`}},
		"if": {
			`{"if":{"properties":{"a":{"pattern":"(?=x)"}},"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`,
			[]string{"/if", "/if/properties/a/pattern"}, []string{`{"a":"y"}`, `{"c":1}`}, []string{`{}`}},
		"contains": {
			`{"contains":{"type":"string","pattern":"(?=x)"},"minContains":1,"maxContains":1}`,
			[]string{"/contains/pattern", "/maxContains"}, []string{`["x","y"]`}, []string{`[1]`}},
		"behind a reference": {
			`{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"items":{"pattern":"(?=x)"}}}}`,
			[]string{"/$defs/a/items/pattern", "/not"}, []string{`["y"]`}, nil},
		"around itself": {
			`{"$id":"s","not":{"required":["a"],"properties":{"a":{"$ref":"#"}}},"pattern":"(?=x)"}`,
			[]string{"/not", "/pattern"}, []string{`{"a":{}}`}, nil},
		"unevaluatedProperties": {
			`{"allOf":[{"patternProperties":{"(?=x)":true}}],"unevaluatedProperties":false}`,
			[]string{"/allOf/0/patternProperties/(?=x)", "/unevaluatedProperties"}, []string{`{"x":1}`}, nil},
		"what only else evaluates": {
			`{"properties":{"a":true},"if":{"required":["a"],"properties":{"a":{"pattern":"(?=x)"}}},"else":{"properties":{"b":true}},"unevaluatedProperties":false}`,
			[]string{"/if", "/if/properties/a/pattern", "/unevaluatedProperties"}, []string{`{"a":"y","b":1}`}, nil},
		"what has nothing unchecked": {
			`{"not":{"pattern":"^x"},"properties":{"a":{"pattern":"(?=x)"}}}`,
			[]string{"/properties/a/pattern"}, []string{`"y"`}, []string{`"x"`}},
	} {
		s := compile(t, test.schema, nil)
		if got := s.Unchecked(); !slices.Equal(got, test.listed) {
			t.Errorf("%s: unchecked: %q, want %q", name, got, test.listed)
		}
		for _, data := range test.valid {
			if err := s.Validate(t.Context(), []byte(data)); err != nil {
				t.Errorf("%s: %s is valid, but: %v", name, data, err)
			}
		}
		for _, data := range test.invalid {
			if err := s.Validate(t.Context(), []byte(data)); err == nil {
				t.Errorf("%s: %s is accepted", name, data)
			}
		}
	}
}

// A relaxed oneOf is explained as what the author wrote.
func TestRelaxedKeywordIsExplained(t *testing.T) {
	err := compile(t, `{"oneOf":[{"type":"string","pattern":"^(?!a)"},{"type":"null"}]}`, nil).Validate(t.Context(), []byte(`7`))
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok || invalid.Problems[0].Keyword != "oneOf" || invalid.Problems[0].Expected != "null or string" {
		t.Errorf("got %v", err)
	}
}

// Formats are annotations unless they are asserted. Other implementations assert them, so
// that a value which depends on them is not rejected either.
func TestFindingR7FormatsRejectNothing(t *testing.T) {
	for schema, data := range map[string]string{
		`{"oneOf":[{"type":"string","format":"date"},{"type":"string","format":"date-time"}]}`:                                     `"2026-01-31"`,
		`{"oneOf":[{"type":"string","format":"uri"},{"const":"none"}]}`:                                                            `"none"`,
		`{"oneOf":[{"format":"ipv4"},{"format":"ipv6"}]}`:                                                                          `"::1"`,
		`{"not":{"format":"uri"}}`:                                                                                                 `"x"`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","oneOf":[{"format":"date"},{"format":"date-time"}]}`:                 `"2026-01-31"`,
		`{"$ref":"#/x/a","x":{"a":{"if":{"type":"string","format":"email"},"then":{"minLength":100},"else":{"type":["string"]}}}}`: `"x"`,
	} {
		if err := compile(t, schema, nil).Validate(t.Context(), []byte(data)); err != nil {
			t.Errorf("%s against %s: %v", data, schema, err)
		}
	}
	asserted := &jsonschema.Options{AssertFormats: true}
	dates := compile(t, `{"oneOf":[{"format":"date"},{"format":"date-time"}]}`, asserted)
	if got := dates.Unchecked(); got != nil {
		t.Errorf("formats that are asserted are unchecked: %q", got)
	}
	if err := dates.Validate(t.Context(), []byte(`7`)); err == nil {
		t.Error("7 fits both formats, but is accepted")
	}
	addresses := compile(t, `{"oneOf":[{"format":"ipv4"},{"format":"ipv6"}]}`, asserted)
	if err := addresses.Validate(t.Context(), []byte(`"::1"`)); err != nil {
		t.Errorf("a format that is never asserted: %v", err)
	}
}

// The library keeps the location of every schema in the document. A long name above many
// schemas must not multiply.
func TestLocationsAreBounded(t *testing.T) {
	long := `{"properties":{"` + strings.Repeat("a", 100_000) + `":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"not":{}},`, 200), ",") + `]}}}`
	if _, err := jsonschema.Compile([]byte(long), nil); err == nil || !strings.Contains(err.Error(), "names") {
		t.Errorf("got %v, want an error about names", err)
	}
}

// Whatever the schema, a value that is valid with a regular expression is valid if Go cannot
// compile it, and what is relaxed is listed.
func TestFindingR7RandomSchemasAcceptMore(t *testing.T) {
	relaxed := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		raw, err := json.Marshal(map[string]any{
			"allOf": []any{randomSchema(r, 3), map[string]any{"$ref": "#/x/a"}},
			"x":     map[string]any{"a": randomSchema(r, 3), "b": randomSchema(r, 2)},
		})
		if err != nil {
			t.Fatal(err)
		}
		exact := compile(t, string(raw), nil)
		loose := compile(t, strings.ReplaceAll(string(raw), "^a", "(?=)^a"), nil)
		isUnchecked := loose.Unchecked() != nil
		for _, value := range []string{`1`, `"a"`, `"b"`, `{}`, `{"a":"a"}`, `{"a":"b","b":"a"}`, `{"b":1,"c":"b"}`, `[]`, `["a","a"]`, `["b","a",1]`, `[{"a":"a"},"b"]`} {
			isValid := exact.Validate(t.Context(), []byte(value)) == nil
			err := loose.Validate(t.Context(), []byte(value))
			if isValid && err != nil {
				t.Fatalf("seed %d: %s is rejected by\n%s\n%v", seed, value, raw, err)
			}
			if !isValid && err == nil {
				relaxed++
				if !isUnchecked {
					t.Fatalf("seed %d: %s is accepted, and nothing is listed:\n%s", seed, value, raw)
				}
			}
		}
	}
	if relaxed < 100 {
		t.Errorf("only %d results depend on a regular expression", relaxed)
	}
}

func randomSchema(r *rand.Rand, depth int) any {
	pick := func(list ...any) any { return list[r.IntN(len(list))] }
	sub := func() any { return randomSchema(r, depth-1) }
	list := func() any { return []any{sub(), sub()} }
	s := map[string]any{}
	for range 1 + r.IntN(3) {
		if depth == 0 {
			s[pick("pattern", "const", "type").(string)] = nil
			continue
		}
		switch keyword := pick("pattern", "patternProperties", "properties", "items", "prefixItems", "contains", "not", "oneOf", "anyOf", "allOf", "if",
			"unevaluatedProperties", "unevaluatedItems", "additionalProperties", "dependentSchemas", "required", "$ref", "propertyNames").(string); keyword {
		case "pattern":
			s[keyword] = nil
		case "patternProperties":
			s[keyword] = map[string]any{pick("^a", "^b").(string): sub()}
		case "properties", "dependentSchemas":
			s[keyword] = map[string]any{pick("a", "b").(string): sub()}
		case "prefixItems", "oneOf", "anyOf", "allOf":
			s[keyword] = list()
		case "contains":
			s[keyword], s["maxContains"] = sub(), r.IntN(2)
		case "if":
			s["if"], s["then"], s["else"] = sub(), sub(), sub()
		case "required":
			s[keyword] = []any{pick("a", "b")}
		case "$ref":
			s[keyword] = "#/x/b"
		case "unevaluatedProperties", "unevaluatedItems", "additionalProperties":
			s[keyword] = pick(false, sub())
		default:
			s[keyword] = sub()
		}
	}
	for keyword, value := range s {
		if value == nil {
			s[keyword] = map[string]any{"pattern": pick("^a", "^b"), "const": pick("a", "b", 1), "type": pick("string", "object", "array", "integer")}[keyword]
		}
	}
	return s
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

func TestCompileErrors(t *testing.T) {
	tests := []struct {
		schema, want string
	}{
		{``, "well-formed"},
		{`{"type":"string","type":"object"}`, "twice"},
		{`[]`, "a JSON object or a boolean"},
		{`{"type":"strin"}`, `/type: expected one of the allowed values, got string "strin"`},
		{`{"properties":{"a":{"minLength":-1}}}`, `/properties/a/minLength: expected number of at least 0, got number -1`},
		{`{"required":null}`, `/required: expected array, got null`},
		{`{"$schema":"https://example.com/my-dialect"}`, `unknown dialect "https://example.com/my-dialect"`},
		{`{"$schema":7}`, `unknown dialect`},
		{`{"$ref":"https://example.com/other.json"}`, `reference to "https://example.com/other.json" leaves the schema`},
		{`{"properties":{"a":{"$ref":"other.json#/a"}}}`, "leaves the schema"},
		{`{"$ref":"file:///etc/passwd"}`, `reference to "file:///etc/passwd" leaves the schema`},
		{`{"$ref":"#/$defs/gone"}`, "not found"},
		{`{"minimum":1e999999999}`, "/minimum: a number"},
		{`{"description":"` + strings.Repeat("x", 1<<20) + `"}`, "exceeds the limit of 1048576"},
		{strings.Repeat(`{"not":`, 64) + "{}" + strings.Repeat("}", 64), "nested deeper than 64"},
		{`{"enum":[1` + strings.Repeat(",1", 10_000) + `]}`, "more values"},
	}
	for _, tt := range tests {
		_, err := jsonschema.Compile([]byte(tt.schema), nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "jsonschema: ") {
			t.Errorf("%.60s: error %v, want %q", tt.schema, err, tt.want)
		}
	}
}

// Compile rejects thirty definitions that each refer to the next one twice, which would
// take 2^30 steps.
func TestCompileRefusesBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{"d30":{}`)
	for i := range 30 {
		fmt.Fprintf(&b, `,"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}
	b.WriteString("}}")
	_, err := jsonschema.Compile([]byte(b.String()), nil)
	if err == nil || !strings.Contains(err.Error(), "schemas to one value") {
		t.Errorf("error %v", err)
	}
}

func TestDialects(t *testing.T) {
	tests := []struct {
		schema, data string
		valid        bool
	}{
		{`{"prefixItems":[{"type":"string"}]}`, `[1]`, false},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}]}`, `[1]`, false},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"type":"string"}]}`, `[1]`, true},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`, `[1]`, false},
		{`{"$schema":"http://json-schema.org/draft-04/schema","maximum":3,"exclusiveMaximum":true}`, `3`, false},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","dependentRequired":{"a":["b"]}}`, `{"a":1}`, false},
		{`{"$schema":"http://json-schema.org/draft-07/schema","definitions":{"a":{}},"$ref":"#/definitions/a","type":"null"}`, `1`, true},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"type":"strin"}`, false},
		{`{"$ref":"#/$defs/a","type":"null","$defs":{"a":{}}}`, `1`, false},
		{`true`, `1`, true},
		{`false`, `1`, false},
	}
	for _, tt := range tests {
		if err := compile(t, tt.schema, nil).Validate(t.Context(), []byte(tt.data)); (err == nil) != tt.valid {
			t.Errorf("%s against %s: %v", tt.data, tt.schema, err)
		}
	}
}

// A regular expression that Go cannot compile does not affect the rest of the schema.
func TestUnchecked(t *testing.T) {
	s := compile(t, `{
		"properties": {"a/b": {"type": "string", "pattern": "^(?!x)"}, "c": {"pattern": "^c$"}},
		"patternProperties": {"(?<=p)q": {"type": "string"}, "^n_": {"type": "integer"}},
		"additionalProperties": false
	}`, nil)
	want := []string{"/patternProperties/(?<=p)q", "/properties/a~1b/pattern"}
	if got := s.Unchecked(); !slices.Equal(got, want) {
		t.Errorf("unchecked: %q, want %q", got, want)
	}
	for data, valid := range map[string]bool{
		`{"a/b":"x"}`: true, `{"a/b":1}`: false, `{"c":"d"}`: false, `{"pq":1}`: true, `{"n_":"x"}`: false,
	} {
		if err := s.Validate(t.Context(), []byte(data)); (err == nil) != valid {
			t.Errorf("%s: %v", data, err)
		}
	}
	if got := compile(t, order, nil).Unchecked(); got != nil {
		t.Errorf("unchecked: %q", got)
	}
}

// Regular expressions are those of ECMAScript, where \s is not limited to ASCII.
func TestPatternsOfECMAScript(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		matches       bool
	}{
		{`^a\sb$`, "a\u00a0b", true},
		{`^a\sb$`, "a b", true},
		{`^a\sb$`, "asb", false},
		{`^a\\sb$`, `a\sb`, true},
		{`^\S+$`, "a\u2003b", false},
		{`^[\sx]+$`, "x\u3000\ufeff", true},
		{`^[^\s]+$`, "a\u00a0b", false},
		{`^[\s\S]+$`, "a\u00a0b\n", true},
		{`^[\]\s]\s$`, "]\u00a0", true},
		{`^[[]\s$`, "[\u00a0", true},
		{`^.$`, "\r", false},
		{`^.$`, "\u2028", false},
		{`^\.[.]$`, "..", true},
		{`^[]a]?$`, "a", false}, // [] matches nothing
		{`^[^]b$`, "\nb", true},
		{`\`, "a", true}, // not a regular expression, and so not checked
	} {
		schema, err := json.Marshal(map[string]string{"pattern": tt.pattern})
		if err != nil {
			t.Fatal(err)
		}
		value, err := json.Marshal(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if err := compile(t, string(schema), nil).Validate(t.Context(), value); (err == nil) != tt.matches {
			t.Errorf("%s for %s: %v", value, schema, err)
		}
	}
}

func TestFormats(t *testing.T) {
	tests := []struct {
		format, data string
		valid        bool
	}{
		{"date-time", `"2026-02-28T23:59:59.5+01:00"`, true},
		{"date-time", `"2026-02-29T00:00:00Z"`, false},
		{"date-time", `"2024-02-29T00:00:00Z"`, true},
		{"date-time", `"2026-01-01 00:00:00Z"`, false},
		{"date-time", `"2026-01-01T00:00:00"`, false},
		{"date-time", `7`, true},
		{"date", `"2026-12-31"`, true},
		{"date", `"2026-13-01"`, false},
		{"email", `"a@example.com"`, true},
		{"email", `"nobody"`, false},
		{"uri", `"https://example.com/a?b#c"`, true},
		{"uri", `"no spaces"`, false},
		{"uuid", `"anything"`, true},
		{"unheard-of", `"anything"`, true},
	}
	for _, tt := range tests {
		for _, dialect := range []string{"https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"} {
			schema := `{"$schema":"` + dialect + `","format":"` + tt.format + `"}`
			on := compile(t, schema, &jsonschema.Options{AssertFormats: true})
			if err := on.Validate(t.Context(), []byte(tt.data)); (err == nil) != tt.valid {
				t.Errorf("%s as %s: %v", tt.data, tt.format, err)
			}
			if err := compile(t, schema, nil).Validate(t.Context(), []byte(tt.data)); err != nil {
				t.Errorf("%s as %s, formats off: %v", tt.data, tt.format, err)
			}
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(order, `{"item":"ab"}`)
	f.Add(`{"$ref":"#"}`, `1`)
	f.Add(`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, `null`)
	f.Add(`{"$schema":"http://json-schema.org/draft-04/schema","id":"x","items":[{}],"additionalItems":false}`, `[1,2]`)
	f.Add(`{"$dynamicRef":"#m","$dynamicAnchor":"m","unevaluatedItems":{"contains":1}}`, `[[]]`)
	f.Add(`{"patternProperties":{"(?=":{}},"pattern":"[","format":"regex"}`, `"["`)
	f.Add(`{"type":"object","properties":{"a":{"type":["string","null"],"minLength":1,"maxLength":9,"enum":["x",null]},"b":{"type":"integer","minimum":0,"exclusiveMaximum":10,"multipleOf":2},"c":{"const":{"d":1}}},"required":["a"],"additionalProperties":false,"minProperties":1,"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"a":"x","b":4,"c":{"d":1.0}}`)
	f.Add(`{"prefixItems":[{"type":"boolean"}],"items":{"format":"date-time"},"uniqueItems":true,"contains":{"type":"string"},"minContains":1,"maxItems":3}`, `[true,"2026-01-02T03:04:05Z"]`)
	f.Add(`{"allOf":[{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"not":{"required":["b"]}}}],"oneOf":[{"minProperties":1},{"maxProperties":0}],"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":true},"unevaluatedProperties":{"type":"number"}}`, `{"a":1,"b":2}`)
	f.Add(`{"$id":"https://example.com/s","$anchor":"x","anyOf":[{"$ref":"#x"},{"$ref":"#/$defs/a~1b"}],"$defs":{"a/b":{"$id":"t","type":"string","contentEncoding":"base64","default":"","deprecated":true}}}`, `"YQ=="`)
	f.Fuzz(func(t *testing.T, schema, data string) {
		s, err := jsonschema.Compile([]byte(schema), &jsonschema.Options{OptionalNull: true, AssertFormats: true})
		if err != nil {
			return
		}
		if err := jsonschema.CompileValidator(s); err != nil {
			t.Fatalf("there is a proof for a schema that is none: %v", err)
		}
		if jsonschema.Proves(s, []byte(data)) && jsonschema.ValidateTree(s, []byte(data)) != nil {
			t.Errorf("proved, but the validator says %v", jsonschema.ValidateTree(s, []byte(data)))
		}
		err = s.Validate(t.Context(), []byte(data))
		if err != nil && (err.Error() == "" || strings.Contains(err.Error(), "%!")) {
			t.Errorf("%q", err)
		}
		jsonschema.Lint([]byte(schema))
	})
}

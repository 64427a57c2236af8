// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

func compile(t testing.TB, schema string, opts *jsonschema.Options) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.Compile([]byte(schema), opts)
	if err != nil {
		t.Fatalf("Compile(%s): %v", schema, err)
	}
	return s
}

const order = `{
	"type": "object",
	"properties": {
		"item":   {"type": "string", "minLength": 2, "maxLength": 9, "pattern": "^[a-z]+$"},
		"colour": {"type": "string", "enum": ["red", "green", "blue"]},
		"qty":    {"type": "integer", "minimum": 1, "exclusiveMaximum": 100, "multipleOf": 5},
		"size":   {"type": ["number", "null"], "maximum": 9.5},
		"when":   {"type": "string", "format": "date-time"},
		"tags":   {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
		"to":     {"type": "object", "properties": {"zip": {"type": "string"}}, "required": ["zip"]},
		"v":      {"const": 2},
		"a/b":    {"type": "boolean"}
	},
	"required": ["item"],
	"additionalProperties": false
}`

// T59: each line of the text has a path, the expected and the actual value, and no Go
// terms.
func TestExplanations(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"no object", `[1]`, `(root): expected object, got array of 1 item`},
		{"missing", `{}`, `/item: expected string, got nothing (the property is required)`},
		{"null", `{"item":null}`, `/item: expected string, got null`},
		{"type", `{"item":"ab","qty":"5"}`, `/qty: expected integer, got string "5"`},
		{"fraction", `{"item":"ab","qty":5.5}`, `/qty: expected integer, got number 5.5`},
		{"enum", `{"item":"ab","colour":"Gren"}`, `/colour: expected one of the allowed values, got string "Gren"; allowed: "red", "green", "blue"; did you mean "green"?`},
		{"const", `{"item":"ab","v":1}`, `/v: expected the value 2, got number 1`},
		{"minimum", `{"item":"ab","qty":0}`, `/qty: expected number of at least 1, got number 0`},
		{"maximum", `{"item":"ab","size":9.6}`, `/size: expected number of at most 9.5, got number 9.6`},
		{"below", `{"item":"ab","qty":100}`, `/qty: expected number less than 100, got number 100`},
		{"multiple", `{"item":"ab","qty":7}`, `/qty: expected multiple of 5, got number 7`},
		{"unknown", `{"item":"ab","color":"red"}`, `/color: expected a known property, got unknown property "color"; allowed: "a/b", "colour", "item", "qty", "size", "tags", "to", "v", "when"; did you mean "colour"?`},
		{"short", `{"item":"a"}`, `/item: expected string of at least 2 characters, got 1 character`},
		{"long", `{"item":"abcdefghij"}`, `/item: expected string of at most 9 characters, got 10 characters`},
		{"pattern", `{"item":"AB"}`, `/item: expected string that matches the regular expression ^[a-z]+$, got string "AB"`},
		{"format", `{"item":"ab","when":"today"}`, `/when: expected date-time such as 2026-01-31T13:00:00Z, got string "today"`},
		{"items", `{"item":"ab","tags":["x",1]}`, `/tags/1: expected string, got number 1`},
		{"few", `{"item":"ab","tags":[]}`, `/tags: expected array of at least 1 item, got 0 items`},
		{"many", `{"item":"ab","tags":["a","b","c","d"]}`, `/tags: expected array of at most 3 items, got 4 items`},
		{"nested", `{"item":"ab","to":{}}`, `/to/zip: expected string, got nothing (the property is required)`},
		{"escaped", `{"item":"ab","a/b":1}`, `/a~1b: expected boolean, got number 1`},
		{"several", `{"qty":"x","size":"y"}`, "/item: expected string, got nothing (the property is required)\n" +
			"/qty: expected integer, got string \"x\"\n/size: expected null or number, got string \"y\""},
		{"syntax", `{"item":`, `(root): expected one well-formed JSON value, got not well-formed JSON: unexpected end of input, expected a value at byte 8`},
		{"twice", `{"item":"ab","item":"cd"}`, `(root): expected one well-formed JSON value, got not well-formed JSON: member "item" appears twice in one object at byte 13`},
		{"empty", ``, `(root): expected one well-formed JSON value, got not well-formed JSON: unexpected end of input, expected a value at byte 0`},
	}
	s := compile(t, order, &jsonschema.Options{AssertFormats: true})
	odd := regexp.MustCompile(`%!|jsonschema|json\.|map\[|\*|0x`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := s.Validate(t.Context(), []byte(tt.data))
			if _, ok := errors.AsType[*jsonschema.ValidationError](err); !ok {
				t.Fatalf("got a %T", err)
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
			if odd.MatchString(err.Error()) {
				t.Errorf("the text betrays Go: %s", err)
			}
		})
	}
}

func TestExplainCombinators(t *testing.T) {
	tests := []struct{ schema, data, want string }{
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `true`, `(root): expected integer or string, got boolean true`},
		{`{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}`, `{}`, `/a: expected value, got nothing (the property is required)`},
		{`{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"string"}}},{"properties":{"k":{"const":"b"},"n":{"type":"integer"}}}]}`,
			`{"k":"b","n":"x"}`, `/n: expected integer, got string "x"`},
		{`{"oneOf":[{"type":"integer"},{"minimum":1}]}`, `2`, `(root): expected a value that fits exactly one alternative, got one that fits alternatives 1 and 2`},
		{`{"allOf":[{"minimum":3},{"multipleOf":2}]}`, `1`, "(root): expected number of at least 3, got number 1\n(root): expected multiple of 2, got number 1"},
		{`{"not":{"type":"null"}}`, `null`, `(root): expected a value that the schema does not exclude, got null`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `/a: expected nothing here, got number 1`},
		{`{"propertyNames":{"pattern":"^x"}}`, `{"a":1}`, `/a: expected a property name that is a string that matches the regular expression ^x, got property name "a"`},
		{`{"additionalProperties":{"propertyNames":{"maxLength":1}}}`, `{"p":{"aa":1},"q":{"bb":1}}`,
			"/p/aa: expected a property name that is a string of at most 1 character, got property name \"aa\"\n" +
				"/q/bb: expected a property name that is a string of at most 1 character, got property name \"bb\""},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, `(root): expected array without repeated items, got equal items at 0 and 2`},
		{`{"contains":{"type":"string"}}`, `[1]`, `(root): expected array with at least 1 matching item, got 0 matching items`},
		{`{"minProperties":1}`, `{}`, `(root): expected object with at least 1 member, got 0 members`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `/b: expected value, got nothing (the property is required next to "a")`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"null"}}}`, `1`, `(root): expected null, got number 1`},
		{`{"unevaluatedProperties":false}`, `{"z":1}`, `/z: expected nothing here, got number 1`},
		{`{"maximum":1e-3}`, `0.25`, `(root): expected number of at most 0.001, got number 0.25`},
	}
	for _, tt := range tests {
		err := compile(t, tt.schema, nil).Validate(t.Context(), []byte(tt.data))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s against %s:\ngot  %v\nwant %s", tt.data, tt.schema, err, tt.want)
		}
	}
}

// Explanations stay readable however large the values are.
func TestExplanationIsBounded(t *testing.T) {
	s := compile(t, `{"additionalProperties":{"type":"integer"}}`, nil)
	var b strings.Builder
	b.WriteString(`{"a":"` + strings.Repeat("long\\n", 1000) + `"`)
	for i := range 1000 {
		b.WriteString(`,"` + strings.Repeat("x", i+1) + `":true`)
	}
	b.WriteString("}")
	err := s.Validate(t.Context(), []byte(b.String()))
	var verr *jsonschema.ValidationError
	if !errors.As(err, &verr) {
		t.Fatal(err)
	}
	if got := len(verr.Problems) + verr.More; got != 1001 {
		t.Errorf("%d problems, want 1001", got)
	}
	text := err.Error()
	if len(text) > 5000 || strings.Count(text, "\n") != len(verr.Problems) || !strings.HasSuffix(text, "more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// T42, finding 26: null for an optional property counts as absent.
func TestOptionalNull(t *testing.T) {
	schema := `{"type":"object","properties":{
		"need":{"type":"string"}, "opt":{"type":"string"}, "enum":{"enum":["a"]}, "null":{"type":["string","null"]},
		"in":{"type":"object","properties":{"deep":{"type":"integer"},"must":{"type":"integer"}},"required":["must"]},
		"list":{"type":"array","items":{"type":"string"}}
	},"required":["need"],"additionalProperties":false}`
	tests := []struct {
		data string
		want string // "" if valid
	}{
		{`{"need":"x","opt":null}`, ""},
		{`{"need":"x","enum":null,"null":null,"opt":null}`, ""},
		{`{"need":"x","in":{"must":1,"deep":null}}`, ""},
		{`{"need":null,"opt":null}`, "/need: expected string, got null"},
		{`{"need":"x","in":{"must":null,"deep":null}}`, "/in/must: expected integer, got null"},
		{`{"need":"x","list":[null]}`, "/list/0: expected string, got null"},
		{`{"need":"x","nope":null}`, `/nope: expected a known property, got unknown property "nope"; allowed: "enum", "in", "list", "need", "null", "opt"`},
		{`null`, "(root): expected object, got null"},
	}
	for _, full := range []bool{false, true} {
		text := schema
		if full { // with a keyword that the proof does not support
			text = strings.Replace(text, `{`, `{"minProperties":0,`, 1)
		}
		s := compile(t, text, &jsonschema.Options{OptionalNull: true})
		if jsonschema.HasProof(s) == full {
			t.Errorf("proof: %t", !full)
		}
		for _, tt := range tests {
			err := s.Validate(t.Context(), []byte(tt.data))
			if got := errorText(err); got != tt.want {
				t.Errorf("%s:\ngot  %q\nwant %q", tt.data, got, tt.want)
			}
		}
	}
	strict := compile(t, schema, nil)
	if err := strict.Validate(t.Context(), []byte(`{"need":"x","opt":null}`)); err == nil {
		t.Error("null is absent even without the option")
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestExactNumbers(t *testing.T) {
	tests := []struct {
		schema, data string
		valid        bool
	}{
		{`{"type":"integer"}`, `1.0`, true},
		{`{"type":"integer"}`, `1e2`, true},
		{`{"type":"integer"}`, `1.5`, false},
		{`{"type":"integer"}`, `1e-1`, false},
		{`{"maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"const":9007199254740993}`, `9007199254740992`, false},
		{`{"const":9007199254740993}`, `9007199254740993.0`, true},
		{`{"enum":[1]}`, `1.0`, true},
		{`{"minimum":0.1}`, `0.1`, true},
		{`{"minimum":0.1}`, `0.09999999999999999999999`, false},
		{`{"exclusiveMaximum":10000000000000000000000}`, `9999999999999999999999`, true},
		{`{"multipleOf":0.01}`, `4.02`, true},
	}
	for _, tt := range tests {
		err := compile(t, tt.schema, nil).Validate(t.Context(), []byte(tt.data))
		if (err == nil) != tt.valid {
			t.Errorf("%s against %s: %v", tt.data, tt.schema, err)
		}
	}
}

func TestInputBounds(t *testing.T) {
	s := compile(t, `{"type":["array","number"]}`, &jsonschema.Options{MaxInputBytes: 300})
	tests := []struct{ data, want string }{
		{strings.Repeat("[", 128) + "1" + strings.Repeat("]", 128), ""},
		{strings.Repeat("[", 129) + "1" + strings.Repeat("]", 129), "nested deeper than 128 levels"},
		{"[" + strings.Repeat("1,", 150) + "1]", "expected at most 300 bytes"},
		{"1e999999999", "not supported"},
		{"[[],[1e-999999999]]", "/1/0: "},
	}
	for _, tt := range tests {
		if got := errorText(s.Validate(t.Context(), []byte(tt.data))); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%.20s: got %q, want %q", tt.data, got, tt.want)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// mendable lists schemas with values for Mend and WithDefaults.
var mendable = [][2]string{
	{`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`, `{"n":"7","x":1}`},
	{`{"type":"object","properties":{"l":{"type":"array","items":{"type":"number"}}}}`, `{"l":"[\"1\",2]"}`},
	{`{"type":"object","properties":{"o":{"type":"object","properties":{"b":{"type":"boolean","default":true}},"default":{}}}}`, `{"o":"{\"b\":\"true\"}"}`},
	{`{"type":["object","null"],"properties":{"a":{"enum":[1,"2"],"default":"2"},"b":{"$ref":"#/properties/a"}}}`, `{"b":null}`},
	{`{"anyOf":[{"type":"integer"},{"type":"object","properties":{"a":{"default":1}}}]}`, `{"a":"1"}`},
	{`{"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":{"type":"array","items":{"properties":{"d":{"default":[1]}}}}}`, `{"x1":"1","y":"[{}]"}`},
	{`{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"c":{"$ref":"#/$defs/t"},"v":{"type":"integer","default":3}}}}}`, `{"c":{"c":{"v":"4"}}}`},
	{`{"type":"integer"}`, `"1.0"`},
	{`{}`, `{"a":1,"a":2}`},
	{`{"maximum":1e999}`, `"1e400"`},
	{`{"properties":{"a":{"default":1}}}`, `000`},
}

// FuzzMend checks the guarantees of Mend for any schema and value: the result is valid,
// only invalid parts change, the argument is not modified, and mending again changes
// nothing.
func FuzzMend(f *testing.F) {
	for _, m := range mendable {
		f.Add([]byte(m[0]), []byte(m[1]))
	}
	f.Fuzz(func(t *testing.T, schema, data []byte) {
		s, err := jsonschema.Compile(schema, nil)
		if err != nil {
			t.Skip()
		}
		jsonschema.LimitWork(s, 1e5)
		before := bytes.Clone(data)
		invalid := s.Validate(t.Context(), data)
		mended, changed, err := s.Mend(t.Context(), data)
		switch {
		case !bytes.Equal(data, before):
			t.Fatalf("%q became %q", before, data)
		case invalid == nil && (err != nil || changed != nil || !bytes.Equal(mended, data)):
			t.Fatalf("%q is valid: got %q, %q, %v", data, mended, changed, err)
		case err != nil && (mended != nil || changed != nil || err.Error() != invalid.Error()):
			t.Fatalf("got %q, %q, %v; want only the error of Validate, %v", mended, changed, err, invalid)
		case err != nil || invalid == nil:
			return
		case len(changed) == 0:
			t.Fatalf("%q became %q, and nothing is reported", data, mended)
		}
		if err := s.Validate(t.Context(), mended); err != nil {
			t.Fatalf("%q became %q: %v", data, mended, err)
		}
		again, changed, err := s.Mend(t.Context(), mended)
		if err != nil || changed != nil || !bytes.Equal(again, mended) {
			t.Fatalf("%q became %q and then %q, %q, %v", data, mended, again, changed, err)
		}
	})
}

// nestedDefault matches schemas with a default that is an object or an array, and some
// others.
var nestedDefault = regexp.MustCompile(`"default"\s*:\s*[[{]|\\u`)

// FuzzDefaults checks the guarantees of WithDefaults for any schema and value: the result
// is JSON, everything else is unchanged, the argument is not modified, and applying
// defaults again changes nothing. The last does not hold if a default is itself an object
// or an array: it is used as is, and may lack members that have a default.
func FuzzDefaults(f *testing.F) {
	for _, m := range mendable {
		f.Add([]byte(m[0]), []byte(m[1]))
	}
	f.Fuzz(func(t *testing.T, schema, data []byte) {
		s, err := jsonschema.Compile(schema, nil)
		if err != nil {
			t.Skip()
		}
		before := bytes.Clone(data)
		filled := s.WithDefaults(data)
		if !bytes.Equal(data, before) {
			t.Fatalf("%q became %q", before, data)
		}
		if json.Valid(data) != json.Valid(filled) {
			t.Fatalf("%q became %q", data, filled)
		}
		if again := s.WithDefaults(filled); !bytes.Equal(again, filled) && !nestedDefault.Match(schema) {
			t.Fatalf("%q became %q and then %q", data, filled, again)
		}
	})
}

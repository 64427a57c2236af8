// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

func TestWithDefaults(t *testing.T) {
	const (
		unit   = `{"properties":{"unit":{"default":"C"}}}`
		nested = `{"properties":{"in":` + unit + `}}`
	)
	for name, test := range map[string]struct{ schema, data, want string }{
		"absent":                    {unit, `{}`, `{"unit":"C"}`},
		"after the others":          {unit, `{"b":1,"a":2}`, `{"b":1,"a":2,"unit":"C"}`},
		"by name":                   {`{"properties":{"b":{"default":2},"a":{"default":1}}}`, `{}`, `{"a":1,"b":2}`},
		"null":                      {unit, `{"unit":null,"a":1}`, `{"a":1,"unit":"C"}`},
		"null without a default":    {`{"properties":{"a":{},"b":{"default":1}}}`, `{"a":null}`, `{"a":null,"b":1}`},
		"there":                     {unit, `{"unit":"F"}`, `{"unit":"F"}`},
		"a default of null":         {`{"properties":{"a":{"default":null}}}`, `{}`, `{"a":null}`},
		"no object":                 {unit, `[1]`, `[1]`},
		"in an object":              {nested, `{"in":{}}`, `{"in":{"unit":"C"}}`},
		"in no object":              {nested, `{}`, `{}`},
		"in null":                   {nested, `{"in":null}`, `{"in":null}`},
		"in a list":                 {`{"properties":{"all":{"items":` + unit + `}}}`, `{"all":[{},{"unit":"F"},3]}`, `{"all":[{"unit":"C"},{"unit":"F"},3]}`},
		"in an empty list":          {`{"properties":{"all":{"items":` + unit + `}}}`, `{"all":[]}`, `{"all":[]}`},
		"in members of any name":    {`{"properties":{"a":{}},"additionalProperties":` + unit + `}`, `{"a":{},"b":{}}`, `{"a":{},"b":{"unit":"C"}}`},
		"of members of any name":    {`{"properties":{"u":{"default":1}},"additionalProperties":{"default":2}}`, `{"b":null}`, `{"b":null,"u":1}`},
		"not inside of a default":   {`{"properties":{"in":{"default":{"a":1},"properties":{"b":{"default":2}}}}}`, `{}`, `{"in":{"a":1}}`},
		"not merged with a default": {`{"properties":{"in":{"default":{"a":1}}}}`, `{"in":{"b":2}}`, `{"in":{"b":2}}`},
		"of a definition":           {`{"$defs":{"u":{"default":"C"}},"properties":{"unit":{"$ref":"#/$defs/u"}}}`, `{}`, `{}`},
		"beside a reference":        {`{"$defs":{"u":{"type":"string"}},"properties":{"unit":{"$ref":"#/$defs/u","default":"C"}}}`, `{}`, `{"unit":"C"}`},
		"in a definition":           {`{"$defs":{"a/b":` + unit + `},"properties":{"in":{"$ref":"#/$defs/a~1b"}}}`, `{"in":{}}`, `{"in":{"unit":"C"}}`},
		"in itself":                 {`{"properties":{"unit":{"default":"C"},"next":{"$ref":"#"}}}`, `{"next":{"next":{}}}`, `{"next":{"next":{"unit":"C"},"unit":"C"},"unit":"C"}`},
		"in what may be null":       {`{"properties":{"in":{"anyOf":[` + unit + `,{"type":"null"}]}}}`, `{"in":{}}`, `{"in":{"unit":"C"}}`},
		"in what null may be":       {`{"properties":{"in":{"anyOf":[{"type":"null"},` + unit + `]}}}`, `{"in":{}}`, `{"in":{"unit":"C"}}`},
		"in one of several":         {`{"properties":{"a":{"default":1},"in":{"anyOf":[` + unit + `,{"type":"string"}]}}}`, `{"in":{}}`, `{"in":{},"a":1}`},
		"escaped":                   {`{"properties":{"\"/~":{"default":1}}}`, `{"\"/\u007e":2}`, `{"\"/~":2}`},
		"not JSON":                  {unit, `{"a":}`, `{"a":}`},
		"more than JSON":            {unit, `{}}`, `{}}`},
		"nothing to fill":           {`{"properties":{"a":{"type":"string"}}}`, `{ "a" : null }`, `{ "a" : null }`},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := jsonschema.Compile([]byte(test.schema), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(schema.WithDefaults([]byte(test.data))); got != test.want {
				t.Errorf("%s of %s\ngot  %s\nwant %s", test.data, test.schema, got, test.want)
			}
		})
	}
}

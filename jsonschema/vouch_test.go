// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// A schema that can be proved is not validated against its metaschema, so a schema that
// the metaschema rejects must not have a proof.
func TestInvalidIsRefused(t *testing.T) {
	for _, schema := range []string{
		`{"type":"strin"}`, `{"type":[]}`, `{"type":["string","string"]}`, `{"type":null}`,
		`{"minimum":"1"}`, `{"multipleOf":0}`, `{"multipleOf":-1}`, `{"minLength":-1}`, `{"maxItems":1.5}`, `{"exclusiveMaximum":true}`,
		`{"required":"a"}`, `{"required":["a","a"]}`, `{"required":[1]}`, `{"properties":[]}`, `{"properties":{"a":1}}`,
		`{"enum":{}}`, `{"pattern":7}`, `{"format":7}`, `{"items":7}`, `{"additionalProperties":"no"}`, `{"anyOf":[1,{"type":"null"}]}`,
		`{"title":7}`, `{"description":null}`, `{"$comment":[]}`, `{"deprecated":"yes"}`, `{"readOnly":0}`, `{"writeOnly":1}`, `{"examples":"one"}`,
		`{"contentEncoding":1}`, `{"contentMediaType":[]}`, `{"contentSchema":7}`,
		`{"$defs":[]}`, `{"$defs":{"unused":{"type":7}}}`, `{"definitions":{"unused":{"title":7}}}`,
		`{"properties":{"a":{"$ref":"#/$defs/a","title":7}},"$defs":{"a":true}}`,
		`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b","title":7},"b":true}}`,
		`{"$ref":"#/nowhere"}`, `{"$ref":7}`, `{"properties":{"a":{"$schema":7}}}`,
	} {
		if s, err := jsonschema.Compile([]byte(schema), nil); err == nil {
			t.Errorf("%s was compiled; vouched for: %v", schema, jsonschema.IsVouched(s))
		}
	}
}

// Provable schemas that are still vouched for after a random replacement are valid.
func TestVouchedIsValid(t *testing.T) {
	vouched := 0
	for seed := range uint64(2000) {
		g := schemaGenerator{rand.New(rand.NewPCG(seed, 1)), 0}
		var document any
		if err := json.Unmarshal([]byte(g.root()), &document); err != nil {
			t.Fatal(err)
		}
		schema, err := json.Marshal(g.spoil(document))
		if err != nil {
			t.Fatal(err)
		}
		s, err := jsonschema.Compile(schema, nil)
		if err != nil || !jsonschema.IsVouched(s) {
			continue
		}
		vouched++
		if err := jsonschema.CompileValidator(s); err != nil {
			t.Errorf("%s is vouched for: %v", schema, err)
		}
	}
	if vouched < 150 {
		t.Errorf("only %d schemas that can be proved: the test shows little", vouched)
	}
}

// spoil replaces one value somewhere in v.
func (g *schemaGenerator) spoil(v any) any {
	rubbish := []any{7, -1, 1.5, "x", nil, true, []any{}, map[string]any{}, []any{"a", "a"}, []any{7}, map[string]any{"a": 7}, map[string]any{"type": "x"}}
	keep := g.IntN(8) > 0
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v { // picks any member
			if keep {
				v[key] = g.spoil(child)
				return v
			}
		}
	case []any:
		if keep && len(v) > 0 {
			i := g.IntN(len(v))
			v[i] = g.spoil(v[i])
			return v
		}
	}
	return rubbish[g.IntN(len(rubbish))]
}

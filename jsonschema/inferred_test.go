// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// A schema that For made validates alike whether Compile is told so or not.
func TestInferredOption(t *testing.T) {
	type in struct {
		Name string   `json:"name" jsonschema:"minLength=2,pattern=^[a-z]+$"`
		Tags []string `json:"tags,omitempty" jsonschema:"enum=a,enum=b"`
		N    int      `json:"n" jsonschema:"minimum=1,multipleOf=2"`
	}
	schema, err := jsonschema.For[in]()
	if err != nil {
		t.Fatal(err)
	}
	eager, err := jsonschema.Compile(schema, nil)
	if err != nil {
		t.Fatal(err)
	}
	lazy, err := jsonschema.Compile(schema, &jsonschema.Options{Inferred: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{
		`{"name":"ab","n":2}`, `{"name":"ab","n":2,"tags":["a"]}`, `{"name":"a","n":2}`, `{"name":"AB","n":2}`, `{"n":2}`,
		`{"name":"ab","n":3}`, `{"name":"ab","n":0}`, `{"name":"ab","n":2,"tags":["c"]}`, `{"name":"ab","n":2,"more":1}`, `[]`, `{`,
	} {
		want, got := eager.Validate([]byte(value)), lazy.Validate([]byte(value))
		if (want == nil) != (got == nil) || want != nil && want.Error() != got.Error() {
			t.Errorf("%s: %v, and inferred %v", value, want, got)
		}
	}
}

// Whoever says that a schema was inferred and gives another hears of what would make
// values pass that should not; the rest is said when a value does not pass.
func TestInferredOptionMisused(t *testing.T) {
	for _, schema := range []string{
		`{"type":"strin"}`, `{"minimum":"1"}`, `{"multipleOf":0}`, `{"multipleOf":-1}`, `{"required":"a"}`, `{"properties":[]}`,
		`{"enum":{}}`, `{"minLength":-1}`, `{"pattern":7}`, `{"items":7}`, `{"additionalProperties":"no"}`,
	} {
		if _, err := jsonschema.Compile([]byte(schema), &jsonschema.Options{Inferred: true}); err == nil {
			t.Errorf("%s was compiled", schema)
		}
	}
	s, err := jsonschema.Compile([]byte(`{"type":"object","title":7}`), &jsonschema.Options{Inferred: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate([]byte(`{}`)); err != nil {
		t.Error(err)
	}
	if err := s.Validate([]byte(`[]`)); err == nil || !strings.Contains(err.Error(), "a valid schema") {
		t.Errorf("an array: %v", err)
	}
}

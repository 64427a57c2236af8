// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/jsonschema"
)

type purchase struct {
	Item   string            `json:"item" jsonschema:"enum=tea,enum=coffee"`
	Count  int               `json:"count" jsonschema:"minimum=1,maximum=12,multipleOf=2"`
	Price  float64           `json:"price,omitempty" jsonschema:"multipleOf=0.25"`
	When   time.Time         `json:"when,omitzero"`
	Mail   string            `json:"mail,omitempty" jsonschema:"format=email,minLength=3"`
	Code   string            `json:"code,omitempty" jsonschema:"pattern=^[a-z]+$"`
	Extras []string          `json:"extras,omitempty" jsonschema:"uniqueItems=true,maxItems=3"`
	Notes  map[string]string `json:"notes,omitempty"`
	Gift   *purchase         `json:"gift,omitempty"`
}

// The arguments of a typed tool are validated with the options of package mcp.
func TestTypedInput(t *testing.T) {
	raw, err := jsonschema.For[purchase]()
	if err != nil {
		t.Fatal(err)
	}
	s := compile(t, string(raw), &jsonschema.Options{OptionalNull: true, AssertFormats: true})
	for arguments, want := range map[string]string{
		`{"item":"tea","count":2}`: "",
		`{"item":"tea","count":2,"price":0.75,"when":"2026-01-31T13:00:00Z","mail":"a@b","code":"x","extras":["a","b"],"notes":{"a":"b"},"gift":{"item":"coffee","count":4}}`: "",
		`{"item":"tea","count":2,"price":null,"gift":{"item":"tea","count":2,"mail":null}}`:                                                                                   "",
		`{"item":"tee","count":2}`:                    `/item: expected one of the allowed values, got string "tee"; allowed: "tea", "coffee"; did you mean "tea"?`,
		`{"item":"tea","count":3}`:                    `/count: expected multiple of 2, got number 3`,
		`{"item":"tea","count":2,"price":0.3}`:        `/price: expected multiple of 0.25, got number 0.3`,
		`{"item":"tea","count":2,"when":"now"}`:       `/when: expected date-time such as 2026-01-31T13:00:00Z, got string "now"`,
		`{"item":"tea","count":2,"extras":["a","a"]}`: `/extras: expected array without repeated items, got equal items at 0 and 1`,
		`{"item":"tea","count":2,"gift":{"count":2}}`: `/gift/item: expected string, got nothing (the property is required)`,
		`{"item":"tea","count":2,"cuont":2}`:          `/cuont: expected a known property, got unknown property "cuont"; allowed: "code", "count", "extras", "gift", "item", "mail", "notes", "price", "when"; did you mean "count"?`,
	} {
		if got := errorText(s.Validate(t.Context(), []byte(arguments))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", arguments, got, want)
		}
	}
}

// The schemas of forms may list choices with titles.
func TestChoicesOfForms(t *testing.T) {
	for _, form := range []string{
		`{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"r"}}}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},"minItems":1,"maxItems":2}}}`,
		`{"type":"object","properties":{"a":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}},"required":["a"]}`,
	} {
		s := compile(t, form, nil)
		if !jsonschema.HasProof(s) {
			t.Errorf("%s has no proof", form)
		}
		isList := strings.Contains(form, "array")
		for value, valid := range map[string]bool{`"r"`: !isList, `["r"]`: isList, `"b"`: false, `["b"]`: false} {
			if err := s.Validate(t.Context(), []byte(`{"a":`+value+`}`)); (err == nil) != valid {
				t.Errorf("%s: %v", value, err)
			}
		}
	}
}

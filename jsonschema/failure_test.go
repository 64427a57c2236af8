// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// A problem that occurs a hundred thousand times is counted, not stored.
func TestManyFailures(t *testing.T) {
	const n = 100_000
	var unknown strings.Builder
	for i := range n {
		fmt.Fprintf(&unknown, `,"unknown%d":1`, i)
	}
	for name, tt := range map[string]struct{ schema, data string }{
		"items":   {`{"items":{"type":"string"}}`, "[0" + strings.Repeat(",0", n-1) + "]"},
		"nested":  {`{"items":{"items":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, "[[0]" + strings.Repeat(",[0]", n-1) + "]"},
		"choices": {`{"items":{"oneOf":[{"const":"a"},{"const":"b"}]}}`, "[0" + strings.Repeat(",0", n-1) + "]"},
		"unknown": {`{"properties":{"unknown":true},"additionalProperties":false}`, "{" + unknown.String()[1:] + "}"},
	} {
		err := compile(t, tt.schema, nil).Validate(t.Context(), []byte(tt.data))
		invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
		if !ok || len(invalid.Problems) != 16 || invalid.More < n/2 || invalid.More > n-16 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// The allowed constants are listed, with or without titles.
func TestChoiceOfConstants(t *testing.T) {
	s := compile(t, `{"properties":{"size":{"type":"string","oneOf":[{"const":"small","title":"S"},{"const":"large","title":"L"}]}}}`, nil)
	if err := s.Validate(t.Context(), []byte(`{"size":"large"}`)); err != nil {
		t.Error(err)
	}
	err := s.Validate(t.Context(), []byte(`{"size":"lagre"}`))
	const want = `/size: expected one of the allowed values, got string "lagre"; allowed: "small", "large"; did you mean "large"?`
	if fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"strconv"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// Each level of JSON in JSON takes a round of mending, and the rounds are limited: a hostile
// value must not be validated over and over.
func TestMendRounds(t *testing.T) {
	s, err := jsonschema.Compile([]byte(`{"type":"object","properties":{"x":{"$ref":"#"}},"additionalProperties":false}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for levels, want := range map[int]bool{1: true, 8: true, 9: false} {
		value := `{}`
		for range levels {
			value = `{"x":` + strconv.Quote(value) + `}`
		}
		_, changed, err := s.Mend(t.Context(), []byte(value))
		if (err == nil) != want || want && len(changed) != levels {
			t.Errorf("%d levels: changed %v, error %v", levels, changed, err)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate_test

import (
	"testing"

	"github.com/go-psi/psi/internal/uritemplate"
)

func TestPlain(t *testing.T) {
	for uri, want := range map[string]string{
		"a://b/c": "a://b/c", "a://%62/%7Ec%2d": "a://b/~c-", "%2F%3a%20%C3%a9": "%2F%3a%20%C3%a9", "%2562%": "%2562%", "%6": "%6", "": "",
	} {
		if got := uritemplate.Plain(uri); got != want {
			t.Errorf("%q: got %q, want %q", uri, got, want)
		}
	}
}

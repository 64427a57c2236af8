// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package seal_test

import "testing"

// A token has one spelling: whoever remembers which were used compares their text.
func TestSecondLookOneSpelling(t *testing.T) {
	r := ring(t, "a")
	token := r.Seal([]byte("hello"), nil)
	for _, again := range []string{token + "\n", "\r" + token, token[:9] + "\r\n" + token[9:], token + "=", " " + token} {
		if plain, err := r.Open(again, nil); err == nil {
			t.Errorf("%q is another way to write a token, and opens as %q", again, plain)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package ascii_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/ascii"
)

func TestIsName(t *testing.T) {
	want := regexp.MustCompile(`^[A-Za-z0-9_.-]{1,4}\z`)
	texts := []string{"", "a", "abcd", "abcde", "a\n", "é", strings.Repeat("x", 5)}
	for c := range 256 {
		texts = append(texts, string([]byte{byte(c)}), string([]byte{'a', byte(c)}))
	}
	for _, s := range texts {
		if got := ascii.IsName(s, 4, "_.-"); got != want.MatchString(s) {
			t.Errorf("IsName(%q) = %v", s, got)
		}
	}
}

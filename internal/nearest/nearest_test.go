// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package nearest_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/nearest"
)

func TestNearest(t *testing.T) {
	names := []string{"city", "country", "post_code", "lat"}
	for in, want := range map[string]string{
		"City": "city", "citty": "city", "ctiy": "city", "postCode": "post_code", "Post-Code": "post_code",
		"contry": "country", "zip": "", "": "", "lon": "", strings.Repeat("city", 100): "",
	} {
		if got := nearest.Of(in, names); got != want {
			t.Errorf("nearest to %q: got %q, want %q", in, got, want)
		}
	}
}

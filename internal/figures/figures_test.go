// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"regexp"
	"strings"
	"testing"
)

// The tables of this module have a row for mcp with figures in it.
func TestTables(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, "../..", "", false); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`mcp( +[1-9]\d*){5}`, `total( +[1-9]\d*){5}`, `smallest stdio server +[1-9].*`} {
		if !regexp.MustCompile(`(?m)^` + row + `$`).MatchString(out.String()) {
			t.Errorf("no row %s in\n%s", row, out.String())
		}
	}
}

// The calls succeed, also when they are made again.
func TestCalls(t *testing.T) {
	for _, c := range calls {
		makeCall := c.prepare()
		for range 2 {
			if got := makeCall(); !strings.Contains(got, wantResult) {
				t.Errorf("%s: got %s, want %s", c.title, got, wantResult)
			}
		}
	}
}

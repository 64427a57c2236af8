// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package golden

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// settled returns text with JSON decoding errors in one wording: each process chooses one
// of two, so that programs do not depend on them.
func settled(text string) string {
	return strings.ReplaceAll(text, "json: unable to ", "json: cannot ")
}

// Check compares text with the golden file of the given name in testdata.
func Check(t *testing.T, name, text string) {
	t.Helper()
	text = settled(text)
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file) //nolint:gosec // the name is the test's
	if err != nil {
		t.Fatal(err)
	}
	if text == string(want) {
		return
	}
	got, lines := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(got), len(lines)) {
		if got[i] != lines[i] {
			t.Fatalf("%s:%d: got\n%s\nwant\n%s\nIf that is right, run the test with -update.", file, i+1, got[i], lines[i])
		}
	}
	t.Fatalf("%s has %d lines, got %d", file, len(lines), len(got))
}

// PlayVariants writes the result of play for an object, and how the result differs for
// variants of the object.
func PlayVariants(t *testing.T, w io.Writer, name, object string, play func(object string) string) {
	t.Helper()
	expected := play(object)
	_, _ = fmt.Fprintf(w, "> %s %s\n  %s\n", name, object, expected)
	for _, v := range Variants(t, object) {
		WriteDifference(w, v.Name, expected, play(v.Text))
	}
}

// WriteDifference writes how got differs from expected, if it does, for a variant of an
// input: the part that differs, or all of got if that is shorter.
func WriteDifference(w io.Writer, variant, expected, got string) {
	expected, got = settled(expected), settled(got)
	if got == expected {
		return
	}
	start, most := 0, min(len(expected), len(got))
	for start < most && expected[start] == got[start] {
		start++
	}
	end := 0
	for end < most-start && expected[len(expected)-1-end] == got[len(got)-1-end] {
		end++
	}
	start = strings.LastIndexAny(got[:start], ",{[:") + 1 // whole members
	change := fmt.Sprintf("%s => %s", expected[start:len(expected)-end], got[start:len(got)-end])
	if len(change) > len(got) {
		change = got
	}
	_, _ = fmt.Fprintf(w, "    %s\n      %s\n", variant, change)
}

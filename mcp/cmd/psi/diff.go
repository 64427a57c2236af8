// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"strings"

	"github.com/go-psi/psi/internal/printable"
)

// diffContext is how many unchanged lines a difference shows on each side, and maxDiffLine
// how many characters of a line.
const diffContext, maxDiffLine = 3, 200

// diff returns the difference between two texts that differ in one place, for the terminal.
// It shows the lines of shownBefore and shownAfter, which are the texts without secrets.
func diff(path string, shownBefore, shownAfter, before, after []byte) string {
	a, b := textLines(before), textLines(after)
	shownA, shownB := textLines(shownBefore), textLines(shownAfter)
	start, end := 0, 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	from, to := max(start-diffContext, 0), min(len(a)-end+diffContext, len(a))
	var text strings.Builder
	span := func(n int) string { return fmt.Sprintf("%d,%d", from+min(n, 1), n) } // of no lines: after line 0
	fmt.Fprintf(&text, "--- %s\n+++ %[1]s\n@@ -%s +%s @@\n", printable.Line(path), span(to-from), span(to-from+len(b)-len(a)))
	write := func(mark string, lines []string) {
		for _, line := range lines {
			text.WriteString(mark + strings.ReplaceAll(shorten(printable.Text(strings.TrimSuffix(line, "\r")), maxDiffLine), "\n", " ") + "\n")
		}
	}
	write(" ", shownA[from:start])
	write("-", shownA[start:len(a)-end])
	write("+", shownB[start:len(b)-end])
	write(" ", shownA[len(a)-end:to])
	return text.String()
}

// textLines returns the lines of a text. An empty text has none.
func textLines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"go/build/constraint"
	"strings"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/printable"
)

// commentWidth is the width at which comments are wrapped, in characters. maxComment is the
// maximum number of bytes quoted from a text.
const (
	commentWidth = 92
	maxComment   = 8_000
)

// writeComment writes paragraphs as a comment. Each line begins with "// ". Because of the
// space, no text is a directive, except for an old build constraint, which gofmt would even
// move to the top of the file; it is escaped. Empty paragraphs are omitted.
func writeComment(to *strings.Builder, indent string, paragraphs ...string) {
	first := true
	for _, p := range paragraphs {
		lines := wrap(p)
		if len(lines) == 0 {
			continue
		}
		if !first {
			to.WriteString(indent + "//\n")
		}
		first = false
		for _, line := range lines {
			if constraint.IsPlusBuild("// " + line) {
				line = `\` + line
			}
			to.WriteString(strings.TrimRight(indent+"// "+line, " ") + "\n")
		}
	}
}

// wrap splits a text into escaped lines. Line breaks in the text are kept.
func wrap(text string) (lines []string) {
	if len(text) > maxComment {
		text = strings.ToValidUTF8(text[:maxComment], "") + " …"
	}
	for source := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line := ""
		for word := range strings.FieldsSeq(source) {
			word = printable.Line(word)
			switch {
			case line == "":
				line = word
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > commentWidth:
				lines = append(lines, line)
				line = word
			default:
				line += " " + word
			}
		}
		if line != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// sentence returns the text with a final full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package printable_test

import (
	"testing"
	"unicode"

	"github.com/go-psi/psi/internal/printable"
)

func TestPrintable(t *testing.T) {
	for _, test := range []struct{ in, line, text string }{
		{"", "", ""},
		{"plain, ünïcode, 日本, 👍, \\ and \"", "plain, ünïcode, 日本, 👍, \\ and \"", "plain, ünïcode, 日本, 👍, \\ and \""},
		{"a\nb\tc", `a\nb\tc`, "a\nb\tc"},
		{"over\rwritten", `over\rwritten`, `over\rwritten`},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`, `\x1b[31mred\x1b[0m`},
		{"\x00\x7f", `\x00\x7f`, `\x00\x7f`},
		{"C1 \u009b31m", `C1 \u009b31m`, `C1 \u009b31m`},
		{"bidi \u202eevil\u2066", `bidi \u202eevil\u2066`, `bidi \u202eevil\u2066`},
		{"zero\u200bwidth\ufeff", `zero\u200bwidth\ufeff`, `zero\u200bwidth\ufeff`},
		{"lines\u2028of\u2029text", `lines\u2028of\u2029text`, `lines\u2028of\u2029text`},
		{"tag \U000e0041", `tag \U000e0041`, `tag \U000e0041`},
		{"broken \xff\x9b, whole \ufffd", `broken \xff\x9b, whole ` + "\ufffd", `broken \xff\x9b, whole ` + "\ufffd"},
	} {
		if got := printable.Line(test.in); got != test.line {
			t.Errorf("Line(%q) is %q, want %q", test.in, got, test.line)
		}
		if got := printable.Text(test.in); got != test.text {
			t.Errorf("Text(%q) is %q, want %q", test.in, got, test.text)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\x1b]0;title\x07b\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		line := printable.Line(s)
		for _, r := range line {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("Line(%q) is %q, which has %U", s, line, r)
			}
		}
		if again := printable.Line(line); again != line {
			t.Fatalf("Line(%q) is %q, and of that %q", s, line, again)
		}
	})
}

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"plain \u001b"}` + "\n":            `{"a":"plain \u001b"}` + "\n",
		"{\n\t\"a\": 1\n}":                       "{\n\t\"a\": 1\n}",
		"[\"C1 \u009b, DEL \x7f, bidi \u202e\"]": `["C1 \u009b, DEL \u007f, bidi \u202e"]`,
		"[\"tag \U000e0041\", \"\xff\"]":         `["tag \udb40\udc41", "\ufffd"]`,
	} {
		if got := printable.JSON([]byte(in)); string(got) != want {
			t.Errorf("JSON(%q) is %q, want %q", in, got, want)
		}
	}
}

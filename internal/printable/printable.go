// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s as text of one line: what could move a cursor, colour a terminal, begin
// a new line of a log or reorder what is shown is escaped as in a Go string. That is
// the control characters C0 and C1, U+2028 and U+2029, characters that are not visible
// (bidirectional controls, zero-width characters) and bytes that are not UTF-8. Text
// without any of these is returned as it is.
func Line(s string) string { return escape(s, "") }

// Text is Line for text of several lines: line feeds and tabs stay.
func Text(s string) string { return escape(s, "\n\t") }

func escape(s, allowed string) string {
	i := indexUnsafe(s, allowed)
	if i < 0 {
		return s
	}
	dst := make([]byte, 0, len(s)+16)
	for i >= 0 {
		dst = append(dst, s[:i]...)
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'x', hex[s[i]>>4], hex[s[i]&0xf])
		} else {
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			dst = append(dst, quoted[1:len(quoted)-1]...)
		}
		s = s[i+size:]
		i = indexUnsafe(s, allowed)
	}
	return string(append(dst, s...))
}

// indexUnsafe returns where the first character stands that is to be escaped, or -1.
func indexUnsafe(s, allowed string) int {
	for i, r := range s {
		switch {
		case r == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !strings.ContainsRune(allowed, r):
			return i
		}
	}
	return -1
}

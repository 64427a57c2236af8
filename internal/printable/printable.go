// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s as a single line. It escapes, as in a Go string, what could move the
// cursor, colour the terminal, start a new line or reorder text: the control characters C0
// and C1, U+2028 and U+2029, invisible characters (bidirectional controls, zero-width
// characters) and bytes that are not UTF-8. It returns other text unchanged.
func Line(s string) string { return escape(s, "") }

// maxExcerpt is the number of bytes of a peer's text that an error text repeats.
const maxExcerpt = 4 << 10

// Excerpt returns the first 4 KiB of a peer's text, for an error text. A longer text ends with
// an ellipsis.
func Excerpt(s string) string {
	if len(s) <= maxExcerpt {
		return s
	}
	end := maxExcerpt
	for end > maxExcerpt-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Text is like [Line], but keeps line feeds and tabs.
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

// indexUnsafe returns the index of the first character to be escaped, or -1.
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

// JSON returns encoded JSON in which strings have escape sequences instead of the
// characters that [Line] escapes. The value is unchanged. Line feeds and tabs outside
// strings are kept.
func JSON(encoded []byte) []byte {
	s := string(encoded)
	i := indexUnsafe(s, "\n\t")
	if i < 0 {
		return encoded
	}
	dst := make([]byte, 0, len(s)+16)
	for i >= 0 {
		dst = append(dst, s[:i]...)
		r, size := utf8.DecodeRuneInString(s[i:])
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		} else {
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		s = s[i+size:]
		i = indexUnsafe(s, "\n\t")
	}
	return append(dst, s...)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// value reads one value. White space before it has already been skipped.
func (s *Scanner) value() {
	if s.err != nil {
		return
	}
	if s.pos >= len(s.data) {
		s.fail("unexpected end of input, expected a value")
		return
	}
	switch s.data[s.pos] {
	case '{':
		s.object()
	case '[':
		s.array()
	case '"':
		s.str()
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		s.number()
	default:
		s.fail("expected a value")
	}
}

// object and array recurse. The depth limit in enter keeps the stack small.
func (s *Scanner) object() {
	if !s.Object() {
		return
	}
	for s.Member() {
		s.space()
		s.value()
	}
}

func (s *Scanner) array() {
	if !s.Array() {
		return
	}
	for s.Element() {
		s.value()
	}
}

func (s *Scanner) literal(want string) {
	end := s.pos + len(want)
	if end > len(s.data) || string(s.data[s.pos:end]) != want {
		s.fail("invalid literal, expected " + want)
		return
	}
	s.pos = end
}

func (s *Scanner) number() {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		s.digits()
	}
}

func (s *Scanner) digits() bool {
	start := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	if s.pos == start {
		s.fail("invalid number, expected a digit")
	}
	return s.pos > start
}

func (s *Scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// str reads a string with its quotes, and reports whether it has escapes.
func (s *Scanner) str() (escaped bool) {
	s.pos++
	for {
		s.pos += plain(s.data[s.pos:])
		if s.pos >= len(s.data) {
			s.fail("unexpected end of input in a string")
			return escaped
		}
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return escaped
		case c == '\\':
			escaped = true
			s.escape()
		case c < 0x20:
			s.fail("control character in a string")
		default:
			r, n := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && n == 1 {
				s.fail("invalid UTF-8 in a string")
			}
			s.pos += n
		}
		if s.err != nil {
			return escaped
		}
	}
}

// plain counts the leading bytes that need no attention in a string: printable ASCII other
// than quote and backslash. It checks eight bytes at a time. A byte is marked in odd by its
// high bit; borrows can mark further bytes after the first one, but none before it.
func plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote := w ^ (ones * '"')
		slash := w ^ (ones * '\\')
		odd := w | (w - ones*0x20) | (quote - ones) | (slash - ones)
		if odd &= highs; odd != 0 {
			return i + bits.TrailingZeros64(odd)/8
		}
	}
	for i < len(b) && b[i] >= 0x20 && b[i] < 0x80 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

func (s *Scanner) escape() {
	s.pos++
	switch c := s.peek(); c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
	case 'u':
		s.pos++
		s.unicode()
	default:
		s.fail("invalid escape in a string")
	}
}

// unicode reads the hex digits of a \u escape and the second half of a surrogate pair.
func (s *Scanner) unicode() {
	r, ok := hex4(s.data[s.pos:])
	if !ok {
		s.fail(`invalid escape, expected four hex digits after \u`)
		return
	}
	s.pos += 4
	if !utf16.IsSurrogate(r) {
		return
	}
	rest := s.data[s.pos:]
	if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
		low, ok := hex4(rest[2:])
		if ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			s.pos += 6
			return
		}
	}
	s.fail("unpaired surrogate in a string")
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Unquote decodes a valid JSON string, given with its quotes. If there are no escapes, the
// result aliases the input.
func Unquote(quoted []byte) []byte {
	in := quoted[1 : len(quoted)-1]
	i := bytes.IndexByte(in, '\\')
	if i < 0 {
		return in
	}
	out := make([]byte, 0, len(in))
	for ; i >= 0; i = bytes.IndexByte(in, '\\') {
		out = append(out, in[:i]...)
		var n int
		out, n = appendEscape(out, in[i:])
		in = in[i+n:]
	}
	return append(out, in...)
}

// Text decodes a valid JSON string, given with its quotes. If the result equals one of
// known, Text returns that string without allocating.
func Text(quoted []byte, known ...string) string {
	text := Unquote(quoted)
	for _, k := range known {
		if string(text) == k {
			return k
		}
	}
	return string(text)
}

// appendEscape decodes the escape at the start of in and returns its length.
func appendEscape(out, in []byte) ([]byte, int) {
	switch c := in[1]; c {
	case 'b':
		return append(out, '\b'), 2
	case 'f':
		return append(out, '\f'), 2
	case 'n':
		return append(out, '\n'), 2
	case 'r':
		return append(out, '\r'), 2
	case 't':
		return append(out, '\t'), 2
	case 'u':
		r, _ := hex4(in[2:])
		if utf16.IsSurrogate(r) && len(in) >= 12 {
			low, _ := hex4(in[8:])
			return utf8.AppendRune(out, utf16.DecodeRune(r, low)), 12
		}
		return utf8.AppendRune(out, r), 6
	default:
		return append(out, c), 2
	}
}

// AppendString appends text as a JSON string, with only the escaping that JSON requires.
// Invalid UTF-8 becomes U+FFFD.
func AppendString[T []byte | string](dst []byte, text T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= 0x20 && c < 0x80 && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= 0x80 {
			r, n := decodeRune(text[i:])
			if r != utf8.RuneError || n != 1 {
				i += n
				continue
			}
		}
		dst = append(dst, text[start:i]...)
		dst = appendEscaped(dst, c)
		i++
		start = i
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}

func decodeRune[T []byte | string](text T) (rune, int) {
	if len(text) > utf8.UTFMax {
		text = text[:utf8.UTFMax]
	}
	return utf8.DecodeRuneInString(string(text))
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if c >= 0x80 {
		return append(dst, "\ufffd"...)
	}
	dst = append(dst, '\\', 'u', '0', '0')
	if c < 0x10 {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, uint64(c), 16)
}

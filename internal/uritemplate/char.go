// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate

import (
	"strings"
	"unicode/utf8"
)

// class is a set of kinds of characters.
type class uint8

const (
	unreserved class = 1 << iota // letters, digits and -._~
	reserved                     // the delimiters of RFC 3986, section 2.2
	queryChar                    // reserved, but allowed in a query value

	everything = unreserved | reserved | queryChar
)

// classes holds the kinds of every ASCII character. Zero means that the character must not
// appear in a URI.
var classes = func() (table [utf8.RuneSelf]class) {
	for c := range byte(utf8.RuneSelf) {
		switch {
		case isAlphanumeric(c) || strings.IndexByte("-._~", c) >= 0:
			table[c] = unreserved
		case strings.IndexByte("&#", c) >= 0:
			table[c] = reserved
		case strings.IndexByte(":/?[]@!$'()*+,;=", c) >= 0:
			table[c] = reserved | queryChar
		}
	}
	return table
}()

func classOf(c byte) class {
	if c >= utf8.RuneSelf {
		return 0
	}
	return classes[c]
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// nextChar returns the kinds and the length in bytes of the character of uri at pos: one
// ASCII character, one percent-encoded character (of one to four octets), or one character
// beyond ASCII that the peer did not encode. Encoded characters belong to every class,
// because they are never delimiters. A size of zero means that there is no well-formed character.
func nextChar(uri string, pos int) (kinds class, size int) {
	if pos >= len(uri) {
		return 0, 0
	}
	c := uri[pos]
	if c == '%' {
		return everything, encodedSize(uri, pos)
	}
	if c < utf8.RuneSelf {
		if classes[c] == 0 {
			return 0, 0
		}
		return classes[c], 1
	}
	if r, size := utf8.DecodeRuneInString(uri[pos:]); r != utf8.RuneError || size > 1 {
		return everything, size
	}
	return 0, 0
}

// encodedSize returns the length of the percent-encoded UTF-8 character at pos,
// or zero if it is malformed.
func encodedSize(uri string, pos int) int {
	var octets [utf8.UTFMax]byte
	for n := range octets {
		octet, ok := unescape(uri, pos+3*n)
		if !ok {
			return 0
		}
		octets[n] = octet
		if !utf8.FullRune(octets[:n+1]) {
			continue
		}
		if r, size := utf8.DecodeRune(octets[:n+1]); r == utf8.RuneError && size <= 1 {
			return 0
		}
		return 3 * (n + 1)
	}
	return 0
}

// unescape decodes the percent-encoded octet of s at pos.
func unescape(s string, pos int) (octet byte, ok bool) {
	if pos+2 >= len(s) || s[pos] != '%' {
		return 0, false
	}
	high, okHigh := unhex(s[pos+1])
	low, okLow := unhex(s[pos+2])
	return high<<4 | low, okHigh && okLow
}

func unhex(c byte) (digit byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// Plain returns uri with the characters decoded that never need to be encoded (RFC 3986,
// section 6.2.2.2). The result is equivalent to uri.
func Plain(uri string) string {
	if !strings.Contains(uri, "%") {
		return uri
	}
	out := make([]byte, 0, len(uri))
	for i := 0; i < len(uri); i++ {
		octet, ok := unescape(uri, i)
		if ok && classOf(octet) == unreserved {
			out = append(out, octet)
			i += 2
			continue
		}
		out = append(out, uri[i])
	}
	return string(out)
}

// decode percent-decodes s, which must be well formed.
func decode(s string) string {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s
	}
	out := append(make([]byte, 0, len(s)-2), s[:i]...)
	for i < len(s) {
		if octet, ok := unescape(s, i); ok {
			out = append(out, octet)
			i += 3
			continue
		}
		out = append(out, s[i])
		i++
	}
	return string(out)
}

const upperHex = "0123456789ABCDEF"

// appendEncoded appends s to dst, percent-encoding what is not in allowed. If reserved
// characters are allowed, percent-encoded octets in s are kept.
func appendEncoded(dst []byte, s string, allowed class) []byte {
	for i := range len(s) {
		c := s[i]
		_, escaped := unescape(s, i)
		if classOf(c)&allowed != 0 || escaped && allowed&reserved != 0 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import "strings"

// readable reports whether a resource is visible by a URI that somebody wrote. Handlers of
// templates get their variables decoded, so that a URI can be written in several ways:
// "files:///hr", "files:///%68r", and in a variable such as {+path} "a/b" and "a%2Fb". All
// have to be visible, so that none is a way around the one that is not.
func (v viewer) readable(uri string) bool {
	if !v.visible(v.ctx, Resource, uri) {
		return false
	}
	simple := respelled(uri, isUnreserved)
	if simple != uri && !v.visible(v.ctx, Resource, simple) {
		return false
	}
	reserved := respelled(uri, isURIChar)
	return reserved == simple || reserved == uri || v.visible(v.ctx, Resource, reserved)
}

// respelled writes a URI as a template does: encoded are the bytes that cannot stand in a
// URI, and of those that were encoded the ones for which plain is false.
func respelled(uri string, plain func(c byte) bool) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(uri))
	for i := 0; i < len(uri); i++ {
		c, encoded := uri[i], false
		if c == '%' && i+2 < len(uri) {
			if high, low := unhex(uri[i+1]), unhex(uri[i+2]); high >= 0 && low >= 0 {
				c, encoded = byte(high<<4|low), true
				i += 2
			}
		}
		if encoded && plain(c) || !encoded && isURIChar(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(out)
}

// unhex is the value of a hexadecimal digit, -1 if c is none.
func unhex(c byte) int {
	if 'A' <= c && c <= 'F' {
		c += 'a' - 'A'
	}
	return strings.IndexByte("0123456789abcdef", c)
}

// isUnreserved and isURIChar are the characters of RFC 3986, sections 2.3 and 2.2.
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isURIChar(c byte) bool {
	return isUnreserved(c) || strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0
}

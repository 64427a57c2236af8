// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate

import "strings"

// Normal returns the normal form of a URI. All spellings that a client or a person may use
// for one URI have the same normal form (RFC 3986, section 6.2.2, and RFC 3987, section 3.1):
//
//   - characters that a URI cannot contain are percent-encoded, such as spaces, braces and
//     everything beyond ASCII, and hexadecimal digits are in upper case;
//   - the scheme is in lower case and so, for http and https, is the host;
//   - an empty path of http and https is written as a slash.
//
// What remains is significant: the path, its dots, its encoded delimiters, and characters
// that are encoded without need. Control characters, and percent signs that encode nothing,
// are kept: no honest client sends them, and no template matches them. A URI that is too long
// to be matched is normalized as well: without the prefix of a mount, it may be short enough.
//
// In the URI of a resource of a mounted server, mount:prefix:URI, the inner URI is normalized
// as well. Otherwise a policy about the outer URI could be passed by in a spelling that the
// mounted server normalizes.
func Normal(uri string) string { return normalize(uri, false) }

// NormalPattern is like [Normal] for a pattern, which is a URI or a template. The expressions
// of a template are unchanged. A URI matches a template if and only if the normal form of the
// URI matches the normal form of the template.
func NormalPattern(pattern string) string { return normalize(pattern, true) }

func normalize(s string, isTemplate bool) string {
	if isEvidentlyNormal(s) {
		return s
	}
	n := normalizer{out: make([]byte, 0, len(s)+8), isTemplate: isTemplate}
	n.uri(s)
	if string(n.out) == s {
		return s
	}
	return string(n.out)
}

// isEvidentlyNormal reports whether nothing in s has to change. It is for most URIs, and
// false for some others.
func isEvidentlyNormal(s string) bool {
	scheme, _, ok := cutScheme(s)
	if !ok || isWeb(scheme) || isMount(scheme) || strings.ToLower(scheme) != scheme {
		return false
	}
	for i := range len(s) {
		if classOf(s[i]) == 0 {
			return false
		}
	}
	return true
}

// cutScheme returns the parts of s before and after the colon that follows its scheme.
func cutScheme(s string) (scheme, rest string, ok bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == ':' && i > 0:
			return s[:i], s[i+1:], true
		case !isAlphanumeric(c) && (i == 0 || strings.IndexByte("+-.", c) < 0):
			return "", "", false
		}
	}
	return "", "", false
}

func isWeb(scheme string) bool {
	return strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

func isMount(scheme string) bool { return strings.EqualFold(scheme, "mount") }

// A normalizer writes the normal form of a URI or a template.
type normalizer struct {
	out        []byte
	isTemplate bool
}

func (n *normalizer) uri(s string) {
	for {
		scheme, rest, ok := cutScheme(s)
		if !ok {
			n.text(s)
			return
		}
		n.lower(scheme)
		n.out = append(n.out, ':')
		if !isMount(scheme) {
			if isWeb(scheme) {
				rest = n.authority(rest)
			}
			n.text(rest)
			return
		}
		prefix, inner, found := strings.Cut(rest, ":")
		n.text(prefix)
		if !found {
			return
		}
		n.out = append(n.out, ':')
		s = inner
	}
}

// authority writes the slashes, the authority and, if the path is empty, the slash of the
// path. It returns what follows.
func (n *normalizer) authority(s string) (rest string) {
	const slashes = "//"
	s, ok := strings.CutPrefix(s, slashes)
	if !ok {
		return s
	}
	n.out = append(n.out, slashes...)
	end := n.authorityEnd(s)
	host := strings.LastIndexByte(s[:end], '@') + 1
	n.text(s[:host])
	n.lower(s[host:end])
	rest = s[end:]
	if end > 0 && (rest == "" || strings.IndexByte("?#", rest[0]) >= 0 || n.isTemplate && (strings.HasPrefix(rest, "{?") || strings.HasPrefix(rest, "{#"))) {
		n.out = append(n.out, '/')
	}
	return rest
}

// authorityEnd returns the index at which the authority at the start of s ends. An
// expression whose value may contain a slash is not a part of it.
func (n *normalizer) authorityEnd(s string) int {
	for i := 0; i < len(s); i++ {
		switch {
		case strings.IndexByte("/?#", s[i]) >= 0:
			return i
		case n.isTemplate && s[i] == '{':
			if i+1 < len(s) && strings.IndexByte("/?#+", s[i+1]) >= 0 {
				return i
			}
			i += expressionEnd(s[i:]) - 1
		}
	}
	return len(s)
}

// expressionEnd returns the length of the expression at the start of s.
func expressionEnd(s string) int {
	if end := strings.IndexByte(s, '}'); end >= 0 {
		return end + 1
	}
	return len(s) // it is not a template
}

func (n *normalizer) text(s string)  { n.write(s, false) }
func (n *normalizer) lower(s string) { n.write(s, true) }

func lowerCase(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

func upperCase(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}

// isControl reports whether c is an ASCII control character.
func isControl(c byte) bool { return c < ' ' || c == 0x7f }

// write writes s, with the letters that are not encoded in lower case if lower is true.
func (n *normalizer) write(s string, lower bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		_, encoded := unescape(s, i)
		switch {
		case n.isTemplate && c == '{':
			end := i + expressionEnd(s[i:])
			n.out = append(n.out, s[i:end]...)
			i = end - 1
		case encoded:
			n.out = append(n.out, '%', upperCase(s[i+1]), upperCase(s[i+2]))
			i += 2
		case c == '%', classOf(c) != 0, isControl(c):
			if lower {
				c = lowerCase(c)
			}
			n.out = append(n.out, c)
		default:
			n.out = append(n.out, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
}

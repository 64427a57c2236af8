// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// operator is a row of the table in RFC 6570, appendix A.
type operator struct {
	first     string // written before the first value
	separator string // written between values
	named     bool   // values are written as name=value
	bare      bool   // an empty named value is written without "="
	allowed   class  // characters that are not percent-encoded
}

var simple = operator{separator: ",", allowed: unreserved}

var operators = map[byte]operator{
	'+': {separator: ",", allowed: unreserved | reserved},
	'#': {first: "#", separator: ",", allowed: unreserved | reserved},
	'.': {first: ".", separator: ".", allowed: unreserved},
	'/': {first: "/", separator: "/", allowed: unreserved},
	';': {first: ";", separator: ";", named: true, bare: true, allowed: unreserved},
	'?': {first: "?", separator: "&", named: true, allowed: unreserved},
	'&': {first: "&", separator: "&", named: true, allowed: unreserved},
}

// Expand returns the URI for the given values. A name without a value is undefined and
// expands to nothing, which RFC 6570 distinguishes from an empty value. Values are strings,
// not the lists and maps of the RFC's fourth level, so {x*} expands like {x}. Expand
// returns an error only if a value is not UTF-8.
func (t *Template) Expand(values map[string]string) (string, error) {
	var out []byte
	for _, part := range t.parts {
		if part.vars == nil {
			out = append(out, part.literal...)
			continue
		}
		lead := part.op.first
		for _, v := range part.vars {
			value, defined := values[v.name]
			if !defined {
				continue
			}
			if !utf8.ValidString(value) {
				return "", fmt.Errorf("uritemplate: value of %q is not UTF-8", v.name)
			}
			out = append(out, lead...)
			out = part.op.appendValue(out, v, value)
			lead = part.op.separator
		}
	}
	return string(out), nil
}

// Rebuild returns the URI for the values that a match has bound, without needless encoding.
// The elements of an exploded variable are those of the value that [Values.Get] returns: an
// element with an encoded separator becomes two.
func (t *Template) Rebuild(values Values) string {
	var out []byte
	for _, part := range t.parts {
		out = append(out, part.literal...)
		lead := part.op.first
		for _, v := range part.vars {
			b := values.find(v.name)
			if b == nil {
				continue
			}
			for _, element := range v.elements(part.op, b) {
				out = append(out, lead...)
				out = part.op.appendValue(out, v, element)
				lead = part.op.separator
			}
		}
	}
	return string(out)
}

// elements returns the values of a variable in an expression.
func (v variable) elements(op operator, b *binding) []string {
	switch {
	case v.explode && !op.named:
		return strings.Split(b.value, op.separator)
	case v.explode && b.list != nil:
		return b.list
	}
	return []string{b.value}
}

func (op operator) appendValue(dst []byte, v variable, value string) []byte {
	if op.named {
		dst = append(dst, v.name...)
		if value == "" && op.bare {
			return dst
		}
		dst = append(dst, '=')
	}
	return appendEncoded(dst, truncate(value, v.prefix), op.allowed)
}

// truncate returns the first n characters of s.
func truncate(s string, n int) string {
	if n == unlimited {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

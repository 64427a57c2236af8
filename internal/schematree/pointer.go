// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package schematree

import (
	"net/url"
	"strconv"
	"strings"
)

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// Escape escapes one reference token of a JSON pointer (RFC 6901).
func Escape(token string) string { return escaper.Replace(token) }

// Join returns the JSON pointer with the given reference tokens.
func Join(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(Escape(t))
	}
	return b.String()
}

// Split returns the reference tokens of a JSON pointer, which is empty or begins with a
// slash.
func Split(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		tokens[i] = unescaper.Replace(t)
	}
	return tokens
}

// Lookup returns the value at a JSON pointer in a tree.
func Lookup(v any, tokens []string) (any, bool) {
	for _, t := range tokens {
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[t]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// LocalRef converts a reference into the same document, "#" or "#/…", to a JSON pointer.
// It returns false for any other reference, including anchors.
func LocalRef(ref string) (pointer string, ok bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return "", false
	}
	pointer, err := url.PathUnescape(fragment)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return "", false
	}
	return pointer, true
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"net/url"
	"strconv"
	"strings"
)

var (
	tokenEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	tokenUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// escapeToken escapes one reference token of a JSON pointer (RFC 6901).
func escapeToken(token string) string { return tokenEscaper.Replace(token) }

func joinPointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escapeToken(t))
	}
	return b.String()
}

func splitPointer(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		tokens[i] = tokenUnescaper.Replace(t)
	}
	return tokens
}

// lookup follows tokens into a tree.
func lookup(v any, tokens []string) (any, bool) {
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

// localRef turns a reference into the same document, "#" or "#/…", into a JSON
// pointer. It reports false for any other reference, anchors included.
func localRef(ref string) (pointer string, ok bool) {
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

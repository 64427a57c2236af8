// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"slices"
	"strings"
)

// maxScopes bounds what is asked for, however many challenges there are.
const maxScopes = 100

// scopeSet is a list of scopes without repetitions, in order of appearance.
func scopeSet(lists ...[]string) []string {
	var set []string
	for _, list := range lists {
		for _, s := range list {
			if isScope(s) && len(set) < maxScopes && !slices.Contains(set, s) {
				set = append(set, s)
			}
		}
	}
	return set
}

// isScope reports whether s is a scope-token (RFC 6749, section 3.3).
func isScope(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return s != "" && len(s) <= 256
}

func splitScope(s string) []string { return scopeSet(strings.Fields(s)) }

// covers reports whether have contains all of want.
func covers(have, want []string) bool {
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
}

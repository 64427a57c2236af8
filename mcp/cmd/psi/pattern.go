// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"path"
	"slices"
	"strings"
)

// checkPatterns validates the patterns of a flag.
func checkPatterns(command, flag string, patterns []string) error {
	for _, pattern := range patterns {
		if _, err := path.Match(withoutSlashes(pattern), ""); err != nil {
			return usagef("%s: %s %q is not a pattern", command, flag, pattern)
		}
	}
	return nil
}

// matchesAny reports whether a name matches one of the patterns, which checkPatterns has
// validated.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matches, _ := path.Match(withoutSlashes(pattern), withoutSlashes(name))
		return matches
	})
}

// withoutSlashes replaces the slashes of URIs, paths and patterns, because * and ? do not
// match them.
func withoutSlashes(text string) string { return strings.ReplaceAll(text, "/", "\x00") }

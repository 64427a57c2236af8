// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package nearest

import "strings"

// maxLength is the maximum length of names that are compared. Mistyped names are short.
const maxLength = 64

// Of returns the candidate most similar to name, or "" if none is similar: at most a
// third of the letters, and at least one, may differ. Case, '-' and '_' are ignored.
func Of(name string, candidates []string) string {
	folded := []rune(fold(name))
	if len(folded) == 0 || len(name) > maxLength {
		return ""
	}
	best, bestDistance := "", max(1, len(folded)/3)+1
	for _, c := range candidates {
		if c == name || len(c) > maxLength {
			continue
		}
		if d := distance(folded, []rune(fold(c))); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func fold(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return r
	}, s))
}

// distance returns the number of insertions, deletions, substitutions and swaps of
// neighbours that turn a into b.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// Hint returns `; did you mean "candidate"?` for the candidate most similar to name, or ""
// if none is similar.
func Hint(name string, candidates []string) string { return Question(Of(name, candidates)) }

// Question returns a hint that asks whether name was meant, like [Hint], or "" if name is "".
func Question(name string) string {
	if name == "" {
		return ""
	}
	return `; did you mean "` + name + `"?`
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package schematree

import "regexp/syntax"

// PatternSize estimates the number of instructions of a regular expression of a schema before it
// is compiled. It returns more than most as soon as there are more: a few bytes, such as
// (a{1000}b{1000}){9}, can expand to as many.
func PatternSize(re *syntax.Regexp, most int) int {
	size := 1 + len(re.Rune)/8 // character classes are searched by bisection
	for _, sub := range re.Sub {
		size += PatternSize(sub, most)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(1, re.Min, re.Max)
	}
	return min(size, most+1)
}

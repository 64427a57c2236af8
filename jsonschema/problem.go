// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Limits of an explanation, which costs a model tokens.
const (
	maxProblems = 16   // in one error
	maxAllowed  = 24   // allowed values shown in one line
	maxValue    = 64   // bytes shown of one value
	maxText     = 4096 // bytes of Error
)

// A ValidationError describes everything that is wrong with a value, up to a limit.
// [Schema.Validate] returns it as a pointer.
type ValidationError struct {
	// Problems has at least one element. It is sorted by pointer.
	Problems []Problem

	// More is the number of problems that were omitted.
	More int
}

// A Problem is one reason why a value is invalid. Its strings are written for a model:
// they use the terms of JSON, not of Go.
type Problem struct {
	// Pointer is the JSON pointer (RFC 6901) of the invalid value, or of the place where a
	// missing value should be. It is "" for the whole value.
	Pointer string

	// Keyword is the violated keyword of the schema, such as "type" or "required", or
	// "syntax" or "size" for invalid input.
	Keyword string

	// Expected and Got describe the expected value and the actual one.
	Expected, Got string

	// Allowed lists the allowed values or, for an unknown property, the known names, as
	// JSON. It is nil if there is no such list.
	Allowed []string

	// Nearest is the allowed string or known property name that is most similar to the
	// actual one, without quotes, or "" if none is similar.
	Nearest string
}

// Error returns one line per problem: where it is, what was expected and found, the
// allowed values, and the most similar one.
func (e *ValidationError) Error() string {
	var b strings.Builder
	left := e.More
	for i := range e.Problems {
		line := e.Problems[i].String()
		if b.Len()+len(line) > maxText && i > 0 {
			left += len(e.Problems) - i
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	if left > 0 {
		fmt.Fprintf(&b, "\nand %d more", left)
	}
	return b.String()
}

// String returns the problem as one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Pointer == "" {
		b.WriteString("(root)")
	} else {
		b.WriteString(clip(oneLine(p.Pointer), 4*maxValue))
	}
	b.WriteString(": expected " + oneLine(p.Expected) + ", got " + oneLine(p.Got))
	if len(p.Allowed) > 0 {
		shown := p.Allowed[:min(len(p.Allowed), maxAllowed)]
		b.WriteString("; allowed: " + strings.Join(shown, ", "))
		if n := len(p.Allowed) - len(shown); n > 0 {
			fmt.Fprintf(&b, " and %d more", n)
		}
	}
	if p.Nearest != "" {
		b.WriteString("; did you mean " + quote(p.Nearest) + "?")
	}
	return b.String()
}

func compareProblems(a, b Problem) int {
	return cmp.Or(
		strings.Compare(a.Pointer, b.Pointer),
		strings.Compare(a.Keyword, b.Keyword),
		strings.Compare(a.Expected, b.Expected))
}

// newError returns an error with at most limit of the problems, sorted and without
// duplicates. Wrong values take precedence over missing ones.
func newError(problems []Problem, limit int) *ValidationError {
	slices.SortStableFunc(problems, compareProblems)
	problems = slices.CompactFunc(problems, func(a, b Problem) bool { return compareProblems(a, b) == 0 })
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.rank() - b.rank() })
	kept := problems[:min(len(problems), limit)]
	slices.SortStableFunc(kept, compareProblems)
	return &ValidationError{Problems: kept, More: len(problems) - len(kept)}
}

func (p Problem) rank() int {
	if p.Keyword == "required" {
		return 1
	}
	return 0
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds on an explanation: a model reads it, and pays for it.
const (
	maxProblems = 16   // in one error
	maxAllowed  = 24   // allowed values shown in one line
	maxValue    = 64   // bytes shown of one value
	maxText     = 4096 // bytes of Error
)

// A ValidationError says everything that is wrong with a value, up to a bound.
// [Schema.Validate] returns it as a pointer.
type ValidationError struct {
	// Problems has at least one element. It is sorted by pointer.
	Problems []Problem

	// More counts the problems that were left out.
	More int
}

// A Problem is one reason why a value does not conform. Its strings are made for
// a model: they speak of JSON, never of Go.
type Problem struct {
	// Pointer is the JSON pointer (RFC 6901) of the value at fault, or of the
	// place where a missing one should be. The whole value is "".
	Pointer string

	// Keyword is the keyword of the schema that failed, such as "type" or
	// "required"; "syntax" and "size" for what is no valid input at all.
	Keyword string

	// Expected and Got say what should be there and what is.
	Expected, Got string

	// Allowed lists, as JSON, the values allowed here, or, for an unknown
	// property, the names that are known. It is nil if there is no such list.
	Allowed []string

	// Nearest is the allowed string or known property name that is most like what
	// was given, as it is without quotes; "" if none is like it.
	Nearest string
}

// Error returns one line per problem: where, what was expected, what was found,
// the allowed values, and the nearest one to what was written.
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

// newError sorts problems, drops repetitions and keeps at most limit; values that
// are there and wrong are kept before those that are missing.
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"strconv"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// leaf words a kind that stands for itself.
func leaf(k santhosh.ErrorKind) Problem {
	switch k := k.(type) {
	case *kind.Type:
		return Problem{Keyword: "type", Expected: typeList(k.Want)}
	case *kind.Enum:
		return oneOf("enum", k.Got, k.Want)
	case *kind.Const:
		return oneOf("const", k.Got, []any{k.Want})
	case *kind.Format:
		return Problem{Keyword: "format", Expected: formatText(k.Want)}
	case *kind.FalseSchema:
		return Problem{Keyword: "false", Expected: "nothing here"}
	case *kind.Not:
		return Problem{Keyword: "not", Expected: "a value that the schema does not exclude"}
	case *kind.RefCycle:
		return Problem{Keyword: "$ref", Expected: "a schema whose references end"}
	}
	if p, ok := stringProblem(k); ok {
		return p
	}
	if p, ok := numberProblem(k); ok {
		return p
	}
	if p, ok := sizeProblem(k); ok {
		return p
	}
	return Problem{Keyword: strings.Join(k.KeywordPath(), "/"), Expected: "a value that conforms to the schema"}
}

func oneOf(keyword string, got any, want []any) Problem {
	p := Problem{Keyword: keyword, Expected: "one of the allowed values", Allowed: compactAll(want)}
	if len(want) == 1 {
		p.Expected = "the value " + p.Allowed[0]
		p.Allowed = nil
	}
	if s, ok := got.(string); ok {
		p.Nearest = nearest(s, stringsOf(want))
	}
	return p
}

func formatText(format string) string {
	switch format {
	case "date-time":
		return "date-time such as 2026-01-31T13:00:00Z"
	case "date":
		return "date such as 2026-01-31"
	case "email":
		return "email address"
	case "uri":
		return "URI such as https://example.com/a"
	}
	return "string of format " + format
}

func stringProblem(k santhosh.ErrorKind) (Problem, bool) {
	switch k := k.(type) {
	case *kind.MinLength:
		return Problem{Keyword: "minLength", Expected: "string of at least " + count(k.Want, "character"),
			Got: count(k.Got, "character")}, true
	case *kind.MaxLength:
		return Problem{Keyword: "maxLength", Expected: "string of at most " + count(k.Want, "character"),
			Got: count(k.Got, "character")}, true
	case *kind.Pattern:
		return Problem{Keyword: "pattern", Expected: "string that matches the regular expression " + clip(k.Want, 4*maxValue)}, true
	}
	return Problem{}, false
}

func numberProblem(k santhosh.ErrorKind) (Problem, bool) {
	switch k := k.(type) {
	case *kind.Minimum:
		return Problem{Keyword: "minimum", Expected: "number of at least " + fraction(k.Want)}, true
	case *kind.Maximum:
		return Problem{Keyword: "maximum", Expected: "number of at most " + fraction(k.Want)}, true
	case *kind.ExclusiveMinimum:
		return Problem{Keyword: "exclusiveMinimum", Expected: "number greater than " + fraction(k.Want)}, true
	case *kind.ExclusiveMaximum:
		return Problem{Keyword: "exclusiveMaximum", Expected: "number less than " + fraction(k.Want)}, true
	case *kind.MultipleOf:
		return Problem{Keyword: "multipleOf", Expected: "multiple of " + fraction(k.Want)}, true
	}
	return Problem{}, false
}

func sizeProblem(k santhosh.ErrorKind) (Problem, bool) {
	size := func(keyword, what, bound, unit string, want, got int) (Problem, bool) {
		return Problem{Keyword: keyword, Expected: what + bound + count(want, unit), Got: count(got, unit)}, true
	}
	switch k := k.(type) {
	case *kind.MinItems:
		return size("minItems", "array", " of at least ", "item", k.Want, k.Got)
	case *kind.MaxItems:
		return size("maxItems", "array", " of at most ", "item", k.Want, k.Got)
	case *kind.MinProperties:
		return size("minProperties", "object", " with at least ", "member", k.Want, k.Got)
	case *kind.MaxProperties:
		return size("maxProperties", "object", " with at most ", "member", k.Want, k.Got)
	case *kind.MinContains:
		return size("minContains", "array", " with at least ", "matching item", k.Want, len(k.Got))
	case *kind.MaxContains:
		return size("maxContains", "array", " with at most ", "matching item", k.Want, len(k.Got))
	case *kind.Contains:
		return size("contains", "array", " with at least ", "matching item", 1, 0)
	case *kind.AdditionalItems:
		return Problem{Keyword: "additionalItems", Expected: "no further items",
			Got: strconv.Itoa(k.Count) + " more"}, true
	case *kind.UniqueItems:
		return Problem{Keyword: "uniqueItems", Expected: "array without repeated items",
			Got: fmt.Sprintf("equal items at %d and %d", k.Duplicates[0], k.Duplicates[1])}, true
	}
	return Problem{}, false
}

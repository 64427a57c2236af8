// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"strconv"
)

// leaf words a failure that stands for itself.
func leaf(f *failure) Problem {
	p := Problem{Keyword: f.keyword}
	switch want := f.want.(type) {
	case []string:
		p.Expected = typeList(want)
	case []any:
		return oneOf(f.keyword, f.got, want)
	case string:
		p.Expected = textExpected(f.keyword, want)
	case int:
		s := sizes[f.keyword]
		p.Expected, p.Got = s.what+count(want, s.unit), count(asInt(f.got), s.unit)
	default:
		p.Expected, p.Got = expected(f)
	}
	return p
}

func asInt(v any) int {
	n, _ := v.(int)
	return n
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

func textExpected(keyword, want string) string {
	if keyword == "pattern" {
		return "string that matches the regular expression " + clip(want, 4*maxValue)
	}
	if number, ok := numberExpected[keyword]; ok {
		return number + clip(want, maxValue)
	}
	switch want {
	case "date-time":
		return "date-time such as 2026-01-31T13:00:00Z"
	case "date":
		return "date such as 2026-01-31"
	case "email":
		return "email address"
	case "uri":
		return "URI such as https://example.com/a"
	}
	return "string of format " + want
}

var numberExpected = map[string]string{
	"minimum":          "number of at least ",
	"maximum":          "number of at most ",
	"exclusiveMinimum": "number greater than ",
	"exclusiveMaximum": "number less than ",
	"multipleOf":       "multiple of ",
}

var sizes = map[string]struct{ what, unit string }{
	"minLength":     {"string of at least ", "character"},
	"maxLength":     {"string of at most ", "character"},
	"minItems":      {"array of at least ", "item"},
	"maxItems":      {"array of at most ", "item"},
	"minProperties": {"object with at least ", "member"},
	"maxProperties": {"object with at most ", "member"},
	"minContains":   {"array with at least ", "matching item"},
	"maxContains":   {"array with at most ", "matching item"},
	"contains":      {"array with at least ", "matching item"},
}

// expected is for keywords whose value says nothing.
func expected(f *failure) (expected, got string) {
	switch f.keyword {
	case "false":
		return "nothing here", ""
	case "not":
		return "a value that the schema does not exclude", ""
	case "$ref":
		return "a schema whose references end", ""
	case "additionalItems":
		return "no further items", strconv.Itoa(asInt(f.got)) + " more"
	case "uniqueItems":
		both, _ := f.got.([2]int)
		return "array without repeated items", fmt.Sprintf("equal items at %d and %d", both[0], both[1])
	}
	return "a value that conforms to the schema", ""
}

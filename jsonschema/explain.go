// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An explainer converts a tree of failures to a list of problems.
type explainer struct {
	document any // schema, nil if it is not known
	tree     any // the validated value
	limit    int
	problems []Problem
	more     int // problems that were only counted

	// known caches the problems of failures with causes. Failures may share causes.
	known map[*failure]*explainer
}

// explain describes f, the failure of tree.
func explain(document, tree any, limit int, f *failure) *ValidationError {
	e := explainer{document: document, tree: tree, limit: limit, known: map[*failure]*explainer{}}
	e.collect(f)
	return e.err()
}

func (e *explainer) err() *ValidationError {
	if len(e.problems) == 0 {
		e.add(&failure{}, Problem{Keyword: "schema", Expected: "a value that conforms to the schema"})
	}
	err := newError(e.problems, e.limit)
	err.More += e.more
	return err
}

// collect adds the problems of f and its causes.
func (e *explainer) collect(f *failure) {
	if len(f.causes) == 0 {
		e.explain(f)
		return
	}
	own := e.problemsOf(f)
	e.problems = append(e.problems, own.problems...)
	e.more += own.more
}

// problemsOf returns an explainer with the problems of f alone.
func (e *explainer) problemsOf(f *failure) *explainer {
	if known := e.known[f]; known != nil {
		return known
	}
	own := &explainer{document: e.document, tree: e.tree, limit: e.limit, known: e.known}
	own.explain(f)
	first := newError(own.problems, own.limit)
	own.problems, own.more = first.Problems, min(own.more+f.more+first.More, math.MaxInt32)
	e.known[f] = own
	return own
}

func (e *explainer) explain(f *failure) {
	switch f.keyword {
	case "":
		for _, c := range f.causes {
			e.collect(c)
		}
	case "anyOf":
		e.alternatives(f)
	case "oneOf":
		both, ok := f.got.([2]int)
		if !ok {
			e.alternatives(f)
			return
		}
		e.add(f, Problem{Keyword: "oneOf", Expected: "a value that fits exactly one alternative",
			Got: fmt.Sprintf("one that fits alternatives %d and %d", both[0]+1, both[1]+1)})
	case "required", "dependentRequired", "dependencies":
		e.missing(f)
	case "additionalProperties":
		e.unknown(f)
	case "propertyNames":
		e.badName(f)
	default:
		e.add(f, leaf(f))
	}
}

// add adds p. It fills in its location and what was found there, if p lacks them.
func (e *explainer) add(f *failure, p Problem) {
	if p.Pointer == "" {
		p.Pointer = joinPointer(f.at)
	}
	if p.Got == "" {
		p.Got = e.found(f.at)
	}
	e.problems = append(e.problems, p)
}

func (e *explainer) found(at []string) string {
	if v, ok := lookup(e.tree, at); ok {
		return describeValue(v)
	}
	return "something else"
}

// named returns the properties that f is about, up to the limit: looking for a similar
// name takes time, and the sender controls their number.
func (e *explainer) named(f *failure) []string {
	names := slices.Sorted(slices.Values(f.names))
	shown := names[:min(len(names), e.limit)]
	e.more += len(names) - len(shown)
	return shown
}

// missing adds a problem for each missing property.
func (e *explainer) missing(f *failure) {
	props := append(slices.Clone(f.schema), "properties")
	got := "nothing (the property is required)"
	if f.because != "" {
		got = "nothing (the property is required next to " + quote(f.because) + ")"
	}
	for _, name := range e.named(f) {
		e.add(f, Problem{
			Pointer:  joinPointer(f.at) + "/" + escapeToken(name),
			Keyword:  f.keyword,
			Expected: describeSchema(e.document, append(slices.Clone(props), name)),
			Got:      got,
		})
	}
}

// unknown adds a problem for each unknown property.
func (e *explainer) unknown(f *failure) {
	props, _ := lookup(e.document, append(slices.Clone(f.schema), "properties"))
	obj, _ := props.(map[string]any)
	known := slices.Sorted(maps.Keys(obj))
	allowed := make([]string, len(known))
	for i, name := range known {
		allowed[i] = quote(name)
	}
	for _, name := range e.named(f) {
		e.add(f, Problem{
			Pointer:  joinPointer(f.at) + "/" + escapeToken(name),
			Keyword:  "additionalProperties",
			Expected: "a known property",
			Got:      "unknown property " + quote(name),
			Allowed:  allowed,
			Nearest:  nearest(name, known),
		})
	}
}

// badName adds the problems of a property's name.
func (e *explainer) badName(f *failure) {
	name := f.names[0]
	inner := explainer{document: e.document, tree: e.tree, limit: e.limit, known: e.known}
	for _, c := range f.causes {
		inner.collect(c)
	}
	for _, p := range inner.err().Problems {
		p.Pointer = joinPointer(f.at)
		p.Keyword = "propertyNames"
		p.Expected = "a property name that is a " + p.Expected
		p.Got = "property name " + quote(name)
		e.problems = append(e.problems, p)
	}
}

// alternatives explains a value that fits none of several schemas: by the allowed
// constants, by the allowed types if none allows its type, or by the alternative that it
// is closest to.
func (e *explainer) alternatives(f *failure) {
	if values := constantsWanted(f); values != nil {
		e.add(f, oneOf(f.keyword, f.causes[0].got, values))
		return
	}
	at := joinPointer(f.at)
	var types []string
	var best *explainer
	for _, cause := range f.causes {
		branch := &explainer{document: e.document, tree: e.tree, limit: e.limit, known: e.known}
		branch.collect(cause)
		if t, ok := typeProblem(branch.problems, at); ok {
			types = append(types, strings.Split(t, " or ")...)
			continue
		}
		if best == nil || branch.score(at) < best.score(at) {
			best = branch
		}
	}
	if best != nil {
		e.problems = append(e.problems, best.problems...)
		e.more += best.more
		return
	}
	slices.Sort(types)
	e.add(f, Problem{Keyword: f.keyword, Expected: typeList(slices.Compact(types))})
}

// constantsWanted returns the constants of alternatives that are all constants, else nil.
func constantsWanted(f *failure) (values []any) {
	for _, c := range f.causes {
		want, _ := c.want.([]any)
		if c.keyword != "const" || len(c.at) != len(f.at) {
			return nil
		}
		values = append(values, want...)
	}
	return values
}

// typeProblem returns the expected type if problems include a wrong type of the value at
// pointer.
func typeProblem(problems []Problem, pointer string) (expected string, ok bool) {
	for _, p := range problems {
		if p.Keyword == "type" && p.Pointer == pointer {
			return p.Expected, true
		}
	}
	return "", false
}

// score is lower the closer a value is to an alternative. A wrong constant counts most,
// because constants usually distinguish alternatives.
func (e *explainer) score(at string) int {
	score := len(e.problems) + e.more
	for _, p := range e.problems {
		child := strings.Count(strings.TrimPrefix(p.Pointer, at), "/") <= 1
		if child && (p.Keyword == "const" || p.Keyword == "enum") {
			score += 1000
		}
	}
	return score
}

// leaf returns the problem of a failure without causes.
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

// expected returns the texts for keywords without a value to show.
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

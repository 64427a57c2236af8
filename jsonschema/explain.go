// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/schematree"
	"github.com/go-psi/psi/internal/strictjson"
)

// An explainer converts a tree of failures to a list of problems.
type explainer struct {
	document any // schema, nil if it is unknown
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
	switch k := f.kind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, c := range f.causes {
			e.collect(c)
		}
	case *kind.AnyOf:
		keyword := "anyOf"
		if schema, _ := schematree.Lookup(e.document, f.schema); isRelaxed(schema) {
			keyword = "oneOf"
		}
		e.alternatives(f, keyword)
	case *kind.OneOf:
		if len(k.Subschemas) != 2 {
			e.alternatives(f, "oneOf")
			return
		}
		e.add(f, Problem{Keyword: "oneOf", Expected: "a value that fits exactly one alternative",
			Got: fmt.Sprintf("one that fits alternatives %d and %d", k.Subschemas[0]+1, k.Subschemas[1]+1)})
	case *kind.Required:
		e.missing(f, "required", k.Missing, "")
	case *kind.DependentRequired:
		e.missing(f, "dependentRequired", k.Missing, k.Prop)
	case *kind.Dependency:
		e.missing(f, "dependencies", k.Missing, k.Prop)
	case *kind.AdditionalProperties:
		e.unknown(f, k.Properties)
	case *kind.PropertyNames:
		e.badName(f, k.Property)
	default:
		e.add(f, leafProblem(k))
	}
}

// isRelaxed reports whether the anyOf of a schema is its oneOf; see relaxer.
func isRelaxed(schema any) bool {
	obj, _ := schema.(map[string]any)
	return obj["oneOf"] != nil && obj["anyOf"] == nil
}

// add adds p, with its Pointer and Got filled in if they are empty.
func (e *explainer) add(f *failure, p Problem) {
	if p.Pointer == "" {
		p.Pointer = schematree.Join(f.at)
	}
	if p.Got == "" {
		p.Got = e.found(f.at)
	}
	e.problems = append(e.problems, p)
}

func (e *explainer) found(at []string) string {
	if v, ok := schematree.Lookup(e.tree, at); ok {
		return describeValue(v)
	}
	return "something else"
}

// firstNames returns the first names in sorted order, up to the limit, because searching
// for a similar name takes time and the sender controls the number of names.
func (e *explainer) firstNames(names []string) []string {
	names = slices.Sorted(slices.Values(names))
	shown := names[:min(len(names), e.limit)]
	e.more += len(names) - len(shown)
	return shown
}

// missing adds a problem for each missing property. because is the property that requires
// them, or "".
func (e *explainer) missing(f *failure, keyword string, names []string, because string) {
	props := append(slices.Clone(f.schema), "properties")
	got := "nothing (the property is required)"
	if because != "" {
		got = "nothing (the property is required next to " + quote(because) + ")"
	}
	for _, name := range e.firstNames(names) {
		e.add(f, Problem{
			Pointer:  schematree.Join(f.at) + "/" + schematree.Escape(name),
			Keyword:  keyword,
			Expected: describeSchema(e.document, append(slices.Clone(props), name)),
			Got:      got,
		})
	}
}

// unknown adds a problem for each unknown property.
func (e *explainer) unknown(f *failure, names []string) {
	props, _ := schematree.Lookup(e.document, append(slices.Clone(f.schema), "properties"))
	obj, _ := props.(map[string]any)
	known := slices.Sorted(maps.Keys(obj))
	allowed := make([]string, len(known))
	for i, name := range known {
		allowed[i] = quote(name)
	}
	for _, name := range e.firstNames(names) {
		e.add(f, Problem{
			Pointer:  schematree.Join(f.at) + "/" + schematree.Escape(name),
			Keyword:  "additionalProperties",
			Expected: "a known property",
			Got:      "unknown property " + quote(name),
			Allowed:  allowed,
			Nearest:  nearest.Of(name, known),
		})
	}
}

// badName adds the problems of a property's name.
func (e *explainer) badName(f *failure, name string) {
	inner := explainer{document: e.document, tree: e.tree, limit: e.limit, known: e.known}
	for _, c := range f.causes {
		inner.collect(c)
	}
	for _, p := range inner.err().Problems {
		p.Pointer = schematree.Join(f.at)
		p.Keyword = "propertyNames"
		p.Expected = "a property name that is a " + p.Expected
		p.Got = "property name " + quote(name)
		e.problems = append(e.problems, p)
	}
}

// alternatives explains why a value matches none of several schemas. It lists the allowed
// constants or, if no schema allows the type of the value, the allowed types. Otherwise it
// explains the closest alternative.
func (e *explainer) alternatives(f *failure, keyword string) {
	if values, got := constantsWanted(f); values != nil {
		e.add(f, oneOf(keyword, got, values))
		return
	}
	at := schematree.Join(f.at)
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
	e.add(f, Problem{Keyword: keyword, Expected: typeList(slices.Compact(types))})
}

// constantsWanted returns the constants and the value that they were compared with if all
// alternatives are constants, and nil otherwise.
func constantsWanted(f *failure) (values []any, got any) {
	for _, c := range f.causes {
		k, ok := c.kind.(*kind.Const)
		if !ok || len(c.at) != len(f.at) {
			return nil, nil
		}
		values, got = append(values, k.Want), k.Got
	}
	return values, got
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

// score returns a lower number the closer the value is to the alternative. A wrong constant
// counts most, because constants usually distinguish alternatives.
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

// leafProblem returns the problem of a failure without causes.
func leafProblem(k santhosh.ErrorKind) Problem {
	switch k := k.(type) {
	case *kind.Type:
		return Problem{Keyword: "type", Expected: typeList(k.Want)}
	case *kind.Enum:
		return oneOf("enum", k.Got, k.Want)
	case *kind.Const:
		return oneOf("const", k.Got, []any{k.Want})
	case *kind.Format:
		return Problem{Keyword: "format", Expected: formatText(k.Want)}
	case *kind.Pattern:
		return Problem{Keyword: "pattern", Expected: "string that matches the regular expression " + clip(k.Want, 4*maxValue)}
	case *kind.FalseSchema:
		return Problem{Keyword: "false", Expected: "nothing here"}
	case *kind.Not:
		return Problem{Keyword: "not", Expected: "a value that the schema does not exclude"}
	case *kind.RefCycle:
		return Problem{Keyword: "$ref", Expected: "a schema whose references end"}
	case *kind.AdditionalItems:
		return Problem{Keyword: "additionalItems", Expected: "no further items", Got: strconv.Itoa(k.Count) + " more"}
	case *kind.UniqueItems:
		return Problem{Keyword: "uniqueItems", Expected: "array without repeated items", Got: fmt.Sprintf("equal items at %d and %d", k.Duplicates[0], k.Duplicates[1])}
	}
	if p, ok := numberProblem(k); ok {
		return p
	}
	if p, ok := sizeProblem(k); ok {
		return p
	}
	return Problem{Keyword: strings.Join(k.KeywordPath(), "/"), Expected: "a value that conforms to the schema"}
}

func numberProblem(k santhosh.ErrorKind) (p Problem, ok bool) {
	problem := func(keyword, expected string, want *big.Rat) (Problem, bool) {
		digits, _ := want.FloatPrec() // exact, because it was read from JSON
		n, _ := strictjson.ParseDecimal(want.FloatString(digits))
		return Problem{Keyword: keyword, Expected: expected + clip(n.String(), maxValue)}, true
	}
	switch k := k.(type) {
	case *kind.Minimum:
		return problem("minimum", "number of at least ", k.Want)
	case *kind.Maximum:
		return problem("maximum", "number of at most ", k.Want)
	case *kind.ExclusiveMinimum:
		return problem("exclusiveMinimum", "number greater than ", k.Want)
	case *kind.ExclusiveMaximum:
		return problem("exclusiveMaximum", "number less than ", k.Want)
	case *kind.MultipleOf:
		return problem("multipleOf", "multiple of ", k.Want)
	}
	return Problem{}, false
}

func sizeProblem(k santhosh.ErrorKind) (p Problem, ok bool) {
	problem := func(keyword, expected, unit string, want, got int) (Problem, bool) {
		return Problem{Keyword: keyword, Expected: expected + count(want, unit), Got: count(got, unit)}, true
	}
	switch k := k.(type) {
	case *kind.MinLength:
		return problem("minLength", "string of at least ", "character", k.Want, k.Got)
	case *kind.MaxLength:
		return problem("maxLength", "string of at most ", "character", k.Want, k.Got)
	case *kind.MinItems:
		return problem("minItems", "array of at least ", "item", k.Want, k.Got)
	case *kind.MaxItems:
		return problem("maxItems", "array of at most ", "item", k.Want, k.Got)
	case *kind.MinProperties:
		return problem("minProperties", "object with at least ", "member", k.Want, k.Got)
	case *kind.MaxProperties:
		return problem("maxProperties", "object with at most ", "member", k.Want, k.Got)
	case *kind.MinContains:
		return problem("minContains", "array with at least ", "matching item", k.Want, len(k.Got))
	case *kind.MaxContains:
		return problem("maxContains", "array with at most ", "matching item", k.Want, len(k.Got))
	case *kind.Contains:
		return problem("contains", "array with at least ", "matching item", 1, 0)
	}
	return Problem{}, false
}

func oneOf(keyword string, got any, want []any) Problem {
	p := Problem{Keyword: keyword, Expected: "one of the allowed values", Allowed: compactAll(want)}
	if len(want) == 1 {
		p.Expected = "the value " + p.Allowed[0]
		p.Allowed = nil
	}
	if s, ok := got.(string); ok {
		p.Nearest = nearest.Of(s, stringsOf(want))
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

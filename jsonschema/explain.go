// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// An explainer turns the validator's tree of causes into a list of problems.
type explainer struct {
	document any // the schema, nil if it is not known
	tree     any // the value
	limit    int
	problems []Problem
}

func (e *explainer) err() *ValidationError {
	if len(e.problems) == 0 {
		e.add(&santhosh.ValidationError{}, Problem{Keyword: "schema", Expected: "a value that conforms to the schema"})
	}
	return newError(e.problems, e.limit)
}

// collect adds the problems of v and what caused it. A kind is either a bracket
// around its causes, which is opened, or a problem.
func (e *explainer) collect(v *santhosh.ValidationError) {
	switch k := v.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, c := range v.Causes {
			e.collect(c)
		}
	case *kind.AnyOf:
		e.alternatives(v, "anyOf")
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			e.alternatives(v, "oneOf")
			return
		}
		e.add(v, Problem{Keyword: "oneOf", Expected: "a value that fits exactly one alternative",
			Got: fmt.Sprintf("one that fits alternatives %d and %d", k.Subschemas[0]+1, k.Subschemas[1]+1)})
	case *kind.Required:
		e.missing(v, k.Missing, "required", "")
	case *kind.DependentRequired:
		e.missing(v, k.Missing, "dependentRequired", k.Prop)
	case *kind.Dependency:
		e.missing(v, k.Missing, "dependencies", k.Prop)
	case *kind.AdditionalProperties:
		e.unknown(v, k.Properties)
	case *kind.PropertyNames:
		e.badName(v, k.Property)
	default:
		e.add(v, leaf(v.ErrorKind))
	}
}

// add records p at the location of v, and what is found there unless p says so.
func (e *explainer) add(v *santhosh.ValidationError, p Problem) {
	if p.Pointer == "" {
		p.Pointer = joinPointer(v.InstanceLocation)
	}
	if p.Got == "" {
		p.Got = e.found(v.InstanceLocation)
	}
	e.problems = append(e.problems, p)
}

func (e *explainer) found(at []string) string {
	if v, ok := lookup(e.tree, at); ok {
		return describeValue(v)
	}
	return "something else"
}

// missing adds one problem for each property that is not there.
func (e *explainer) missing(v *santhosh.ValidationError, names []string, keyword, because string) {
	props := append(schemaPointer(v.SchemaURL), "properties")
	got := "nothing (the property is required)"
	if because != "" {
		got = "nothing (the property is required next to " + quote(because) + ")"
	}
	for _, name := range names {
		e.add(v, Problem{
			Pointer:  joinPointer(v.InstanceLocation) + "/" + escapeToken(name),
			Keyword:  keyword,
			Expected: describeSchema(e.document, append(slices.Clone(props), name)),
			Got:      got,
		})
	}
}

// unknown adds one problem for each property that the schema does not know.
func (e *explainer) unknown(v *santhosh.ValidationError, names []string) {
	props, _ := lookup(e.document, append(schemaPointer(v.SchemaURL), "properties"))
	obj, _ := props.(map[string]any)
	known := slices.Sorted(maps.Keys(obj))
	allowed := make([]string, len(known))
	for i, name := range known {
		allowed[i] = quote(name)
	}
	for _, name := range names {
		e.add(v, Problem{
			Pointer:  joinPointer(v.InstanceLocation) + "/" + escapeToken(name),
			Keyword:  "additionalProperties",
			Expected: "a known property",
			Got:      "unknown property " + quote(name),
			Allowed:  allowed,
			Nearest:  nearest(name, known),
		})
	}
}

// badName adds the problems of a property's name. The causes have no location
// of their own, and that of v cannot be trusted: the validator reuses its memory.
func (e *explainer) badName(v *santhosh.ValidationError, name string) {
	at := v.InstanceLocation
	if _, ok := lookup(e.tree, append(slices.Clone(at), name)); !ok {
		at = ownerOf(e.tree, name, len(at))
	}
	inner := explainer{limit: e.limit, tree: name}
	for _, c := range v.Causes {
		inner.collect(c)
	}
	for _, p := range inner.err().Problems {
		p.Pointer = joinPointer(at) + "/" + escapeToken(name)
		p.Keyword = "propertyNames"
		p.Expected = "a property name that is a " + p.Expected
		p.Got = "property name " + quote(name)
		e.problems = append(e.problems, p)
	}
}

// ownerOf returns where, depth levels down, the first object with a member of
// the given name is, or nil.
func ownerOf(tree any, name string, depth int) []string {
	obj, isObject := tree.(map[string]any)
	if depth == 0 {
		if _, ok := obj[name]; ok {
			return []string{}
		}
		return nil
	}
	if list, ok := tree.([]any); ok {
		for i, v := range list {
			if rest := ownerOf(v, name, depth-1); rest != nil {
				return append([]string{strconv.Itoa(i)}, rest...)
			}
		}
	}
	if isObject {
		for _, key := range slices.Sorted(maps.Keys(obj)) {
			if rest := ownerOf(obj[key], name, depth-1); rest != nil {
				return append([]string{key}, rest...)
			}
		}
	}
	return nil
}

// alternatives explains a value that fits none of several schemas: by the types
// it could have had if its type fits none, else by the alternative that it is
// closest to.
func (e *explainer) alternatives(v *santhosh.ValidationError, keyword string) {
	at := joinPointer(v.InstanceLocation)
	var types []string
	var best *explainer
	for _, cause := range v.Causes {
		branch := &explainer{document: e.document, tree: e.tree, limit: e.limit}
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
		return
	}
	slices.Sort(types)
	e.add(v, Problem{Keyword: keyword, Expected: typeList(slices.Compact(types))})
}

// typeProblem reports the expected type if problems say that the value at
// pointer has a wrong one.
func typeProblem(problems []Problem, pointer string) (expected string, ok bool) {
	for _, p := range problems {
		if p.Keyword == "type" && p.Pointer == pointer {
			return p.Expected, true
		}
	}
	return "", false
}

// score is lower the closer a value is to an alternative. A wrong constant
// weighs most: it is how alternatives are usually told apart.
func (e *explainer) score(at string) int {
	score := len(e.problems)
	for _, p := range e.problems {
		child := strings.Count(strings.TrimPrefix(p.Pointer, at), "/") <= 1
		if child && (p.Keyword == "const" || p.Keyword == "enum") {
			score += 1000
		}
	}
	return score
}

// schemaPointer returns where in the document the schema of a URL is.
func schemaPointer(schemaURL string) []string {
	_, fragment, _ := strings.Cut(schemaURL, "#")
	pointer, _ := localRef("#" + fragment)
	return splitPointer(pointer)
}

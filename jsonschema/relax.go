// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"maps"
	"slices"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-psi/psi/internal/schematree"
)

// A relaxer changes a graph of schemas so that nothing is rejected because of a keyword
// that is not checked: a regular expression that Go cannot compile, or a format that is an
// annotation here, but may be an assertion for the author of the schema.
//
// Without that keyword, its schema and those around it accept too much. Most keywords then
// accept too much, too. Keywords that exclude or count what another schema accepts would
// reject too much, and are relaxed: "not" and "maxContains" are removed, "oneOf" becomes
// "anyOf", and "if" no longer implies "then". A member that is then no longer evaluated
// must not be rejected by "unevaluatedProperties" and "unevaluatedItems", which are removed
// as well.
type relaxer struct {
	survey   *survey
	document any
	asserted map[string]func([]byte) bool

	uncertain map[*santhosh.Schema]bool // may accept more than written
	hidden    map[*santhosh.Schema]bool // may leave members unevaluated that it would evaluate as written

	unchecked []string
}

// relax relaxes the graph of s and returns sorted pointers to the keywords of document that
// are not checked as they are written. asserted are the formats that are checked.
func relax(s *survey, document any, asserted map[string]func([]byte) bool) []string {
	r := relaxer{survey: s, document: document, asserted: asserted}
	if !slices.ContainsFunc(s.schemas, mayReject) && !slices.ContainsFunc(s.schemas, hasUncheckedPattern) {
		return nil
	}
	r.uncertain = s.above(r.isUnchecked, everySubschema)
	if len(r.uncertain) == 0 {
		return nil
	}
	// Before the graph changes: removing a keyword also removes edges.
	r.hidden = s.above(r.hides, inPlaceSchemas)
	for _, schema := range s.schemas {
		r.patterns(schema)
		r.counts(schema)
		r.unevaluated(schema)
	}
	slices.Sort(r.unchecked)
	return slices.Compact(r.unchecked)
}

// mayReject reports whether a schema has a keyword that can reject a value because another
// schema accepts too much.
func mayReject(s *santhosh.Schema) bool {
	return s.Not != nil || s.OneOf != nil || s.If != nil || s.MaxContains != nil || s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil
}

func hasUncheckedPattern(s *santhosh.Schema) bool {
	return isBeyondGo(s.Pattern) || hasUncheckedName(s)
}

func hasUncheckedName(s *santhosh.Schema) bool {
	for re := range s.PatternProperties {
		if isBeyondGo(re) {
			return true
		}
	}
	return false
}

// isBeyondGo reports whether Go cannot compile a regular expression.
func isBeyondGo(re santhosh.Regexp) bool {
	p, ok := re.(*pattern)
	return ok && p.Regexp == nil
}

// isUnchecked reports whether a schema has a keyword that is not checked.
func (r *relaxer) isUnchecked(s *santhosh.Schema) bool {
	if hasUncheckedPattern(s) {
		return true
	}
	pointer, ok := pointerOf(s)
	if !ok {
		return false // in a metaschema, which does not depend on formats
	}
	schema, _ := schematree.Lookup(r.document, schematree.Split(pointer))
	obj, _ := schema.(map[string]any)
	format, ok := obj["format"].(string)
	return ok && r.asserted[format] == nil
}

// hides reports whether relaxing a schema may leave members unevaluated.
func (r *relaxer) hides(s *santhosh.Schema) bool {
	return hasUncheckedName(s) && s.AdditionalProperties == nil || r.uncertain[s.If] && (s.Then != nil || s.Else != nil)
}

// patterns removes the regular expressions that cannot be checked.
func (r *relaxer) patterns(s *santhosh.Schema) {
	if isBeyondGo(s.Pattern) {
		s.Pattern = nil
		r.report(s, "/pattern")
	}
	maps.DeleteFunc(s.PatternProperties, func(re santhosh.Regexp, _ *santhosh.Schema) bool {
		if !isBeyondGo(re) {
			return false
		}
		s.AdditionalProperties = nil // the removed pattern might match any name
		r.report(s, "/patternProperties/"+schematree.Escape(re.String()))
		return true
	})
}

// counts relaxes the keywords that exclude or count what an uncertain schema accepts.
func (r *relaxer) counts(s *santhosh.Schema) {
	if r.uncertain[s.Not] {
		s.Not = nil
		r.report(s, "/not")
	}
	if slices.ContainsFunc(s.OneOf, func(sub *santhosh.Schema) bool { return r.uncertain[sub] }) {
		anyOf := &santhosh.Schema{DraftVersion: s.DraftVersion, Location: s.Location, AnyOf: s.OneOf}
		s.AllOf = append(slices.Clip(s.AllOf), anyOf)
		s.OneOf = nil
		r.report(s, "/oneOf")
	}
	if r.uncertain[s.If] && (s.Then != nil || s.Else != nil) {
		s.Then = nil // what fails "if" as it is relaxed also fails it as written, so that "else" applies
		r.report(s, "/if")
	}
	if r.uncertain[s.Contains] && s.MaxContains != nil {
		s.MaxContains = nil
		r.report(s, "/maxContains")
	}
}

func (r *relaxer) unevaluated(s *santhosh.Schema) {
	if !r.hidden[s] {
		return
	}
	if s.UnevaluatedProperties != nil {
		s.UnevaluatedProperties = nil
		r.report(s, "/unevaluatedProperties")
	}
	if s.UnevaluatedItems != nil {
		s.UnevaluatedItems = nil
		r.report(s, "/unevaluatedItems")
	}
}

// report adds a keyword, unless it belongs to a metaschema.
func (r *relaxer) report(s *santhosh.Schema, keyword string) {
	if pointer, ok := pointerOf(s); ok {
		r.unchecked = append(r.unchecked, pointer+keyword)
	}
}

// pointerOf returns the JSON pointer of a schema in the document, or false if the schema is
// in another document, which can only be a metaschema.
func pointerOf(s *santhosh.Schema) (pointer string, ok bool) {
	if !strings.HasPrefix(s.Location, location+"#") {
		return "", false
	}
	return schematree.Join(schemaTokens(s.Location)), true
}

// everySubschema calls visit for all direct subschemas of s.
func everySubschema(s *santhosh.Schema, visit func(*santhosh.Schema)) {
	inPlaceSchemas(s, visit)
	partSchemas(s, visit)
}

// above returns the schemas for which is holds, and all schemas that lead to one of them by
// edges. A dynamic reference leads to every root.
func (s *survey) above(is func(*santhosh.Schema) bool, edges func(*santhosh.Schema, func(*santhosh.Schema))) map[*santhosh.Schema]bool {
	var queue []*santhosh.Schema
	found := map[*santhosh.Schema]bool{}
	parents := map[*santhosh.Schema][]*santhosh.Schema{}
	for _, schema := range s.schemas {
		if is(schema) {
			found[schema] = true
			queue = append(queue, schema)
		}
		add := func(sub *santhosh.Schema) { parents[sub] = append(parents[sub], schema) }
		edges(schema, add)
		if schema.DynamicRef != nil || schema.RecursiveRef != nil {
			for _, root := range s.roots {
				add(root)
			}
		}
	}
	for len(queue) > 0 {
		last := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, parent := range parents[last] {
			if !found[parent] {
				found[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return found
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import santhosh "github.com/santhosh-tekuri/jsonschema/v6"

// inPlaceSchemas calls visit for the schemas that s applies to its own value.
func inPlaceSchemas(s *santhosh.Schema, visit func(*santhosh.Schema)) {
	one := func(list ...*santhosh.Schema) {
		for _, sub := range list {
			if sub != nil {
				visit(sub)
			}
		}
	}
	one(s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		one(s.DynamicRef.Ref)
	}
	one(s.AllOf...)
	one(s.AnyOf...)
	one(s.OneOf...)
	for _, sub := range s.DependentSchemas {
		one(sub)
	}
	for _, dependency := range s.Dependencies {
		anySchemas(dependency, visit)
	}
}

// partSchemas calls visit for the schemas that s applies to parts of its value.
func partSchemas(s *santhosh.Schema, visit func(*santhosh.Schema)) {
	for _, sub := range []*santhosh.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema} {
		anySchemas(sub, visit)
	}
	for _, sub := range s.Properties {
		visit(sub)
	}
	for _, sub := range s.PatternProperties {
		visit(sub)
	}
	for _, sub := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems, s.PrefixItems} {
		anySchemas(sub, visit)
	}
}

// anySchemas is for fields that hold a schema, several, or something else.
func anySchemas(field any, visit func(*santhosh.Schema)) {
	switch v := field.(type) {
	case *santhosh.Schema:
		if v != nil {
			visit(v)
		}
	case []*santhosh.Schema:
		for _, sub := range v {
			visit(sub)
		}
	}
}

// A survey is what there is to know of a graph of schemas before gates change it.
type survey struct {
	schemas []*santhosh.Schema // all, each once
	targets map[*santhosh.Schema]bool

	// contextual says that what a schema makes of a value can depend on the schemas
	// around it.
	contextual bool

	state map[*santhosh.Schema]int
}

const (
	entered = iota + 1 // the schemas that it applies to its own value are being visited
	left
)

func surveyOf(roots []*santhosh.Schema) *survey {
	s := &survey{targets: map[*santhosh.Schema]bool{}, state: map[*santhosh.Schema]int{}}
	for len(roots) > 0 {
		next := roots[len(roots)-1]
		roots = roots[:len(roots)-1]
		s.visit(next, func(part *santhosh.Schema) { roots = append(roots, part) })
	}
	return s
}

// visit adds schema and all that it applies to its own value, and calls later for
// what these apply to its parts.
func (s *survey) visit(schema *santhosh.Schema, later func(*santhosh.Schema)) {
	switch s.state[schema] {
	case entered: // references in a circle
		s.contextual = true
		return
	case left:
		return
	}
	s.state[schema] = entered
	s.schemas = append(s.schemas, schema)
	s.note(schema)
	inPlaceSchemas(schema, func(sub *santhosh.Schema) { s.visit(sub, later) })
	partSchemas(schema, later)
	s.state[schema] = left
}

func (s *survey) note(schema *santhosh.Schema) {
	if schema.Ref != nil {
		s.targets[schema.Ref] = true
	}
	if schema.UnevaluatedItems != nil || schema.UnevaluatedProperties != nil || schema.DynamicRef != nil || schema.RecursiveRef != nil {
		s.contextual = true
	}
}

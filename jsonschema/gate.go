// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	jsonv1 "encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A gate is put in front of each schema that the library has compiled. The library
// validates every alternative in full, which takes time exponential in the depth of the
// value if several alternatives lead to the same member. The gate counts the work, and
// caches the outcome of a schema for a value, so that nothing is validated twice.
//
// To the library, a gate is a schema without keywords that has an extension. It leaves the
// library by a panic, which validate recovers. Counting before the library is called was
// rejected, because it would refuse real filter trees.
type gate struct {
	validator *validator
	schema    *santhosh.Schema // with the original keywords
	isTarget  bool             // of a reference; only such schemas can be reached in several ways
	own       int              // minimum cost
}

// addGate turns s into a gate. Its keywords move to a copy.
func (v *validator) addGate(s *santhosh.Schema, isTarget bool) {
	schema := *s
	if schema.PropertyNames != nil {
		schema.Extensions = append(slices.Clip(schema.Extensions), propertyNames{schema.PropertyNames})
		schema.PropertyNames = nil
	}
	if schema.Format != nil && schema.Format.Name == "regex" {
		schema.Format = nil // the library would compile what the value holds
	}
	clearKeywords(s)
	s.Extensions = []santhosh.SchemaExt{&gate{validator: v, schema: &schema, isTarget: isTarget, own: ownCost(&schema)}}
}

// clearKeywords removes all keywords from a schema, except its location and its dynamic
// anchors.
func clearKeywords(s *santhosh.Schema) {
	fields := reflect.ValueOf(s).Elem()
	for field, value := range fields.Fields() {
		switch field.Name {
		case "DraftVersion", "Location", "DynamicAnchor", "RecursiveAnchor":
		default:
			if field.IsExported() {
				value.SetZero()
			}
		}
	}
}

// Validate implements [santhosh.SchemaExt].
func (g *gate) Validate(ctx *santhosh.ValidatorContext, value any) {
	r := g.validator.runOf(ctx)
	if err := r.budget.spend(g.cost(value) + g.lookups(r.depth)); err != nil {
		panic(stopped{err, g.schema.Location, slices.Clone(ctx.ValueLocation())})
	}
	at := visit{g, addressOf(value)}
	failed, known := r.outcomes[at]
	if !known || failed != nil && failed.ErrorKind == nil && !isQuiet(ctx) {
		r.depth++
		failed, _ = ctx.Validate(g.schema, value, nil).(*santhosh.ValidationError) //nolint:errorlint // the library returns it as it is
		r.depth--
		r.remember(at, failed)
	}
	if failed != nil {
		ctx.AddErr(failed)
	}
}

// A visit is the application of a schema to an object or array.
type visit struct {
	gate *gate
	at   uintptr
}

// addressOf identifies objects and arrays. It returns 0 for values that are too simple to
// be cached.
func addressOf(value any) uintptr {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	case []any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	}
	return 0
}

// isQuiet reports whether the library only needs to know that validation failed, as below
// "not" and "if". Its errors are then empty.
func isQuiet(ctx *santhosh.ValidatorContext) bool {
	_, err := ctx.Equals(struct{}{}, nil)        // fails, because the value is not of a JSON type
	failed, _ := err.(*santhosh.ValidationError) //nolint:errorlint // the library returns it as it is
	return failed != nil && failed.ErrorKind == nil
}

// propertyNames validates the names of an object. The library's own implementation
// does not pass the location, which gates need.
type propertyNames struct{ schema *santhosh.Schema }

func (p propertyNames) Validate(ctx *santhosh.ValidatorContext, value any) {
	obj, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		failed, _ := ctx.Validate(p.schema, name, []string{name}).(*santhosh.ValidationError) //nolint:errorlint // the library returns it as it is
		switch {
		case failed == nil:
			continue
		case failed.ErrorKind == nil: // quiet, see isQuiet
			ctx.AddErr(failed)
			return
		}
		ctx.AddErr(&santhosh.ValidationError{
			SchemaURL:        p.schema.Location,
			InstanceLocation: append(slices.Clone(ctx.ValueLocation()), name),
			ErrorKind:        &kind.PropertyNames{Property: name},
			Causes:           []*santhosh.ValidationError{failed},
		})
	}
}

// ownCost returns the cost of applying a schema to any value, without its subschemas.
func ownCost(s *santhosh.Schema) int {
	names := len(s.Required) + len(s.Dependencies) + len(s.DependentSchemas) + len(s.DependentRequired)
	cost := 1 + (names+len(s.AllOf)+len(s.AnyOf)+len(s.OneOf))/4
	if s.Enum != nil {
		cost += nodes(s.Enum.Values) / 32
	}
	if s.Const != nil {
		cost += nodes(*s.Const) / 32
	}
	return cost
}

// cost returns the cost of applying the schema to value, without its subschemas.
func (g *gate) cost(value any) int {
	s, cost := g.schema, g.own
	switch v := value.(type) {
	case map[string]any:
		cost += len(v) / 4
		for re := range s.PatternProperties {
			for name := range v {
				cost += re.(*pattern).cost(len(name))
			}
		}
	case []any:
		cost += len(v) / 4
		if s.UniqueItems {
			cost += nodes(v) * comparisons(len(v))
		}
	case string:
		cost += len(v) / 256
		if s.Pattern != nil {
			cost += s.Pattern.(*pattern).cost(len(v))
		}
	case jsonv1.Number:
		cost += 1 + len(v)/32
		if strings.ContainsAny(string(v), "eE") {
			cost += 16 // may expand to a thousand digits
		}
		if s.Enum != nil {
			cost += 2 * len(s.Enum.Values) // each number in it is parsed again
		}
	}
	return cost
}

// lookups returns the cost of resolving a dynamic reference, which looks at every schema
// on the way to this one.
func (g *gate) lookups(depth int) int {
	if g.schema.DynamicRef == nil && g.schema.RecursiveRef == nil {
		return 0
	}
	return depth / 16
}

// comparisons returns the cost per item of uniqueItems. The library compares the items of
// short lists in pairs.
func comparisons(length int) int {
	if length > 20 {
		return 6
	}
	return 2 * length
}

// nodes returns the number of values in a value.
func nodes(value any) int {
	n := 1
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			n += nodes(member)
		}
	case []any:
		for _, item := range v {
			n += nodes(item)
		}
	}
	return n
}

// inPlaceSchemas calls visit for the subschemas that s applies to the value itself.
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

// partSchemas calls visit for the subschemas that s applies to parts of the value.
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

// anySchemas calls visit for the schemas in field, if it holds any.
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

// A survey describes a graph of schemas, before gates are added.
type survey struct {
	roots   []*santhosh.Schema
	schemas []*santhosh.Schema // each once
	targets map[*santhosh.Schema]bool

	// contextual reports whether the outcome of a schema for a value can depend on the
	// enclosing schemas.
	contextual bool

	state map[*santhosh.Schema]int
}

const (
	entered = iota + 1 // its in-place subschemas are being visited
	left
)

func surveyOf(roots []*santhosh.Schema) *survey {
	s := &survey{roots: slices.Clone(roots), targets: map[*santhosh.Schema]bool{}, state: map[*santhosh.Schema]int{}}
	for len(roots) > 0 {
		next := roots[len(roots)-1]
		roots = roots[:len(roots)-1]
		s.visit(next, func(part *santhosh.Schema) { roots = append(roots, part) })
	}
	return s
}

// visit adds schema and its in-place subschemas, and calls later for the subschemas that
// these apply to parts of the value.
func (s *survey) visit(schema *santhosh.Schema, later func(*santhosh.Schema)) {
	switch s.state[schema] {
	case entered: // a cycle of references
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

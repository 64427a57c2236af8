// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// FuzzGates compares the validator with the library alone, using schemas that refer to each
// other in every way. Gates count the work and remember outcomes, but must not change which
// values are valid or how failures are explained.
func FuzzGates(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, []byte(`{"a":[{"b":{}}],"b":{"a":1}}`))
	}
	f.Fuzz(checkGates)
}

func TestGatesAgreeWithLibrary(t *testing.T) {
	valid := 0
	for seed := range uint64(300) {
		valid += compareGates(t, seed, []byte(`{"a":{"b":[1,{}]}}`))
	}
	if valid < 300 || valid > 1500 {
		t.Errorf("%d of 1800 values are valid: the test shows little", valid)
	}
}

func checkGates(t *testing.T, seed uint64, data []byte) { compareGates(t, seed, data) }

func compareGates(t *testing.T, seed uint64, data []byte) (valid int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	g := graphGenerator{Rand: random, contextual: random.IntN(4) == 0, circular: random.IntN(8) == 0}
	schema := g.document()
	const most = 20_000 // the library alone has no limit
	s := jsonschema.LimitWork(compile(t, schema, nil), most)
	forgetful := jsonschema.LimitWork(compile(t, schema, nil), most)
	if err := errors.Join(jsonschema.RememberAfter(s, 0), jsonschema.RememberAfter(forgetful, most)); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	if !json.Valid(data) {
		data = []byte(g.value(4))
	}
	for range 6 {
		got := jsonschema.ValidateTree(forgetful, data)
		if errors.Is(got, jsonschema.ErrTooMuchWork) || strings.Contains(fmt.Sprint(got), "well-formed") {
			continue
		}
		got, want := jsonschema.ValidateTree(s, data), jsonschema.ValidateWithLibrary(s, data)
		wrongName := strings.Contains(fmt.Sprint(got, want), "property name") // the library does not know where it is
		if (got == nil) != (want == nil) || problemsOf(got) != problemsOf(want) && !wrongName {
			t.Fatalf("schema  %s\ndata    %s\ngates   %v\nlibrary %v", schema, data, got, want)
		}
		if want == nil {
			valid++
		}
		data = []byte(g.value(4))
	}
	return valid
}

// problemsOf returns the text of an error without the number of further problems, which is
// inexact if the same problem is found in several ways.
func problemsOf(err error) string {
	problems, _, _ := strings.Cut(fmt.Sprint(err), "\nand ")
	return problems
}

// A graphGenerator generates schemas that refer to each other.
type graphGenerator struct {
	*rand.Rand
	contextual bool // with keywords for which outcomes are not remembered
	circular   bool // whether a schema may refer to itself for the same value
	current    int  // index of the definition being generated
}

func (g *graphGenerator) document() string {
	var defs []string
	for i := range 4 {
		g.current = i
		defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, g.object(2)))
	}
	dialect := []string{
		`"$schema":"https://json-schema.org/draft/2020-12/schema","$dynamicAnchor":"node"`,
		`"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"$anchor":"node"`,
		`"$schema":"http://json-schema.org/draft-07/schema#"`,
	}[max(0, g.IntN(6)-3)]
	return fmt.Sprintf(`{%s,"$ref":"#/$defs/d0","$defs":{%s}}`, dialect, strings.Join(defs, ","))
}

func (g *graphGenerator) object(depth int) string {
	keywords := map[string]string{}
	for range 1 + g.IntN(4) {
		name, value, _ := strings.Cut(g.keyword(depth-1), " ")
		keywords[name] = value
	}
	var members []string
	for _, name := range slices.Sorted(maps.Keys(keywords)) {
		members = append(members, fmt.Sprintf("%q:%s", name, keywords[name]))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// part returns a schema for a part of the value, and same returns one for the value itself.
func (g *graphGenerator) part(depth int) string { return g.schema(depth, g.IntN(4)) }

func (g *graphGenerator) same(depth int) string {
	to := g.IntN(4)
	if !g.circular {
		to = g.current + 1 + g.IntN(2)
	}
	return g.schema(depth, to)
}

func (g *graphGenerator) schema(depth, to int) string {
	switch n := g.IntN(10); {
	case n == 0:
		return "false"
	case n == 1 || to > 3:
		return "true"
	case n < 6 || depth <= 0:
		return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, to)
	}
	return g.object(depth)
}

func (g *graphGenerator) keyword(depth int) string {
	list := func() string { return "[" + g.same(depth) + "," + g.same(depth) + "]" }
	name := string("ab"[g.IntN(2)])
	kinds := 21
	if g.contextual {
		kinds = 25
	}
	switch g.IntN(kinds) {
	case 0, 1, 2:
		return fmt.Sprintf(`properties {"a":%s,"b":%s}`, g.part(depth), g.part(depth))
	case 3, 4:
		return "items " + g.part(depth)
	case 5:
		return "anyOf " + list()
	case 6:
		return "oneOf " + list()
	case 7:
		return "allOf " + list()
	case 8:
		return "not " + g.same(depth)
	case 9:
		return "if " + g.same(depth)
	case 10:
		return "then " + g.same(depth)
	case 11:
		return "else " + g.same(depth)
	case 12:
		return "additionalProperties " + g.part(depth)
	case 13:
		return "propertyNames " + g.part(depth)
	case 14:
		return fmt.Sprintf(`dependentSchemas {%q:%s}`, name, g.same(depth))
	case 15:
		return fmt.Sprintf(`patternProperties {"^%s":%s}`, name, g.part(depth))
	case 16:
		return "contains " + g.part(depth)
	case 17:
		return fmt.Sprintf("prefixItems [%s,%s]", g.part(depth), g.part(depth))
	case 18:
		return fmt.Sprintf(`required [%q]`, name)
	case 21:
		return "unevaluatedProperties " + g.part(depth)
	case 22:
		return "unevaluatedItems " + g.part(depth)
	case 23:
		return `$dynamicRef "#node"`
	case 24:
		return `$recursiveRef "#"`
	}
	return `type ` + []string{`"object"`, `"integer"`, `["array","object"]`, `"string"`}[g.IntN(4)]
}

func (g *graphGenerator) value(depth int) string {
	switch n := g.IntN(10); {
	case n < 5 && depth > 0:
		var members []string
		for _, name := range []string{"a", "b", "c"} {
			if g.IntN(3) > 0 {
				members = append(members, fmt.Sprintf("%q:%s", name, g.value(depth-1)))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	case n < 8 && depth > 0:
		items := make([]string, g.IntN(4))
		for i := range items {
			items[i] = g.value(depth - 1)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	return []string{`1`, `"a"`, `null`, `1.5`}[g.IntN(4)]
}

// One schema validates many values concurrently, each with its own budget.
func TestConcurrentValidations(t *testing.T) {
	s := compile(t, filter, nil)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for depth := range 6 {
				value := fmt.Sprintf(`{"field":"f%d","value":"x"}`, i)
				want := strings.Repeat("/args/0", depth) + `/value: expected integer, got string "x"`
				if got := errorText(s.Validate(t.Context(), expression(depth, value))); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// A recursive reference leads to the outermost schema with a recursive anchor, which extends
// the one that contains the reference.
func TestRecursiveReferenceToTheRoot(t *testing.T) {
	s := compile(t, `{"$schema":"https://json-schema.org/draft/2019-09/schema","$id":"https://example.com/node","$recursiveAnchor":true,
		"$ref":"base","required":["name"],
		"$defs":{"base":{"$id":"base","$recursiveAnchor":true,"type":"object","additionalProperties":{"anyOf":[{"type":"string"},{"$recursiveRef":"#"}]}}}}`, nil)
	for value, valid := range map[string]bool{
		`{"name":"a","child":{"name":"b","child":{"name":"c"}}}`: true,
		`{"name":"a","child":{"name":"b","child":{}}}`:           false,
		`{"child":{"name":"b"}}`:                                 false,
	} {
		if err := s.Validate(t.Context(), []byte(value)); (err == nil) != valid || errors.Is(err, jsonschema.ErrTooMuchWork) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/uritemplate"
)

func TestCompare(t *testing.T) {
	const (
		overlaps   = uritemplate.Overlaps
		equivalent = uritemplate.Equivalent
		specific   = uritemplate.MoreSpecific
		disjoint   = uritemplate.Disjoint
	)
	for _, test := range []struct {
		a, b string
		want uritemplate.Relation
	}{
		{"x://{a}", "x://{b}", equivalent},
		{"x://{a}", "y://{a}", disjoint},
		{"x://{a}", "x://{a}/{b}", disjoint},
		{"x://{a}", "x://{+b}", specific},
		{"x://users/{a}", "x://{b}/{c}", specific},
		{"x://{a}/data", "x://{b}/{c}", specific},
		{"x://{a}/data", "x://users/{b}", overlaps},
		{"x://{a}/data", "x://{a}/meta", disjoint},
		{"x://{+a}/data", "x://{+a}/meta", disjoint},
		{"x://{+a}/data", "x://users/{+b}", overlaps},
		{"x://{a}-{b}", "x://{c}", specific},
		{"x://{a}{b}", "x://{c}", specific}, // a and b match at least two characters
		{"x://users", "x://{a}", specific},
		{"x://users", "x://users", equivalent},
		{"x://a/{a}", "x://a{/b}", specific},
		{"x{?a,b}", "x{?b,a}", equivalent},
		{"x{?a}", "x{?a,b}", specific},
		{"x{?a}", "x{?b}", overlaps}, // both match "x"
		{"x?a=1", "x{?a}", specific},
		{"x{+p}{?a,b,c,d,e}", "x{+p}{?e,d,c,b,a}", equivalent},
		{"x/{o}/{+p}{?a,b}", "x/y/{+p}{?b,a,c,d,e}", uritemplate.LessSpecific},
		{"x{?a}", "x{?a*}", equivalent}, // conservative: repeated names
		{"x://{a:3}", "x://{a}", specific},
		{"x://{a:3}", "x://{a:3}", equivalent},
		{"x://{a:3}", "x://{b:4}", specific},
		{"x://{a:9999}", "x://{b}", overlaps}, // conservative: too long
		{"x://{a*}", "x://{a}", uritemplate.LessSpecific},
		{"x://%2F", "x://{a}", specific},
		{"x://{a}", "x:///{a}", disjoint},
		{"x://%80", "x://{a}", disjoint}, // not UTF-8, so no variable matches it
	} {
		a, b := parse(t, test.a), parse(t, test.b)
		if got := uritemplate.Compare(a, b); got != test.want {
			t.Errorf("Compare(%s, %s) = %v, want %v", test.a, test.b, got, test.want)
		}
		if got := uritemplate.Compare(b, a); got != mirror(test.want) {
			t.Errorf("Compare(%s, %s) = %v, want %v", test.b, test.a, got, mirror(test.want))
		}
	}
}

func mirror(r uritemplate.Relation) uritemplate.Relation {
	switch r {
	case uritemplate.MoreSpecific:
		return uritemplate.LessSpecific
	case uritemplate.LessSpecific:
		return uritemplate.MoreSpecific
	}
	return r
}

// FuzzCompare checks every relation against URIs that the templates match.
func FuzzCompare(f *testing.F) {
	f.Add("x://{a}", "x://{+a}", "x://b/c")
	f.Add("x{?a,b}", "x{?b}", "x?a=1")
	f.Add("{a:2}/{b*}", "{+a:3}{/b}", "%C3%AB/1,2")
	f.Fuzz(func(t *testing.T, textA, textB, text string) {
		if len(textA)+len(textB)+len(text) > 100 {
			t.Skip()
		}
		a, errA := uritemplate.Parse(textA)
		b, errB := uritemplate.Parse(textB)
		if errA != nil || errB != nil {
			t.Skip()
		}
		relation := uritemplate.Compare(a, b)
		if back := uritemplate.Compare(b, a); back != mirror(relation) {
			t.Errorf("%s to %s is %v, but the other way round it is %v", a, b, relation, back)
		}
		for _, uri := range []string{text, expandAll(a, text), expandAll(b, text)} {
			checkRelation(t, a, b, relation, uri)
		}
	})
}

// expandAll expands a template with the same value for all variables.
func expandAll(tmpl *uritemplate.Template, value string) string {
	values := map[string]string{}
	for _, name := range tmpl.Names() {
		values[name] = value
	}
	uri, _ := tmpl.Expand(values)
	return uri
}

func checkRelation(t *testing.T, a, b *uritemplate.Template, relation uritemplate.Relation, uri string) {
	t.Helper()
	_, okA := a.Match(uri)
	_, okB := b.Match(uri)
	onlyA := okA && !okB && !refusesRepetition(b)
	onlyB := okB && !okA && !refusesRepetition(a)
	wrong := map[uritemplate.Relation]bool{
		uritemplate.Disjoint:     okA && okB,
		uritemplate.Equivalent:   onlyA || onlyB,
		uritemplate.MoreSpecific: onlyA,
		uritemplate.LessSpecific: onlyB,
	}
	if wrong[relation] {
		t.Errorf("%s to %s is %v, but for %q they match: %t, %t", a, b, relation, uri, okA, okB)
	}
}

// refusesRepetition reports whether a template may reject a URI for a reason unknown to
// Compare: a name with two values.
func refusesRepetition(tmpl *uritemplate.Template) bool {
	text := tmpl.String()
	return strings.ContainsAny(text, ";?&") || strings.Count(text, "{")+strings.Count(text, ",") != len(tmpl.Names())
}

func BenchmarkCompare(b *testing.B) {
	x, y := parse(b, "repo://{owner}/{name}/blob/{+path}{?ref}"), parse(b, "repo://{owner}/{name}/tree/{+path}{?ref}")
	b.ReportAllocs()
	for b.Loop() {
		uritemplate.Compare(x, y)
	}
}

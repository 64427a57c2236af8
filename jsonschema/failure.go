// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/go-psi/psi/internal/decimal"
)

// A failure is a keyword that a value violates, or a group of failures.
type failure struct {
	// keyword is "" for a group of causes, and "false" for a schema that allows nothing.
	keyword string

	// schema and at are the tokens of JSON pointers: to the schema with the keyword,
	// within its document, and to the value, for propertyNames to the member.
	schema, at []string

	// want and got are the value of the keyword and what it was compared with:
	//
	//	type                                    []string
	//	enum, const                             []any, and the value
	//	format, pattern                         string
	//	bounds of a number, multipleOf          string
	//	bounds of a length or size, contains    int, and the int that was found
	//	uniqueItems, oneOf if two alternatives  nil, and their indexes, [2]int
	//	additionalItems                         nil, and their number
	want, got any

	// names are the properties missing according to required, dependentRequired and
	// dependencies, because of the property in because, if any; or those that
	// additionalProperties rejects; or the one whose name propertyNames rejects.
	names   []string
	because string

	// causes are the members of a group, or the failures of each alternative of anyOf and
	// oneOf, or of the name for propertyNames. more counts the problems of causes that
	// were left out.
	causes []*failure
	more   int
}

// Limits of an explanation. Problems beyond them are only counted.
const (
	maxFailures = 8192 // for one value
	maxCauses   = 64   // for one failure, except alternatives
)

// failureOf converts an error of the library. It removes the given number of tokens from
// the front of locations.
func failureOf(v *santhosh.ValidationError, tokens int) *failure {
	t := translator{tokens: tokens, left: maxFailures,
		failures: map[*santhosh.ValidationError]*failure{}, counts: map[*santhosh.ValidationError]int{}}
	return t.failure(v)
}

// A translator converts errors of the library. They may share causes.
type translator struct {
	tokens   int
	left     int // number of failures that may still be converted
	failures map[*santhosh.ValidationError]*failure
	counts   map[*santhosh.ValidationError]int
}

func (t *translator) failure(v *santhosh.ValidationError) *failure {
	if f := t.failures[v]; f != nil {
		return f
	}
	t.left--
	f := &failure{schema: schemaTokens(v.SchemaURL), at: v.InstanceLocation[min(t.tokens, len(v.InstanceLocation)):]}
	t.failures[v] = f
	if !bracketFailure(v.ErrorKind, f) && !valueFailure(v.ErrorKind, f) && !numberFailure(v.ErrorKind, f) && !sizeFailure(v.ErrorKind, f) {
		f.keyword = strings.Join(v.ErrorKind.KeywordPath(), "/")
	}
	for _, cause := range causesOf(v) {
		if t.left > 0 {
			f.causes = append(f.causes, t.failure(cause))
			f.more -= t.count(cause)
		}
	}
	for _, cause := range v.Causes {
		f.more = min(f.more+t.count(cause), math.MaxInt32)
	}
	return f
}

// causesOf returns the causes to explain: all alternatives, because any may be the closest,
// otherwise the first in order. The library reports them in random order.
func causesOf(v *santhosh.ValidationError) []*santhosh.ValidationError {
	switch v.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return v.Causes
	}
	first := make([]*santhosh.ValidationError, 0, min(len(v.Causes), maxCauses)+1)
	for _, cause := range v.Causes {
		if len(first) == maxCauses && compareCauses(cause, first[maxCauses-1]) >= 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(first, cause, compareCauses)
		first = slices.Insert(first, i, cause)
		first = first[:min(len(first), maxCauses)]
	}
	return first
}

// compareCauses orders wrong values before missing values, and then by location.
func compareCauses(a, b *santhosh.ValidationError) int {
	return cmp.Or(missingLast(a)-missingLast(b), slices.Compare(a.InstanceLocation, b.InstanceLocation))
}

func missingLast(v *santhosh.ValidationError) int {
	if _, ok := v.ErrorKind.(*kind.Required); ok {
		return 1
	}
	return 0
}

// count returns the number of problems of an error.
func (t *translator) count(v *santhosh.ValidationError) int {
	n, known := t.counts[v]
	if known || len(v.Causes) == 0 {
		return max(n, leafCount(v.ErrorKind))
	}
	t.counts[v] = 1
	for i, cause := range v.Causes {
		switch c := t.count(cause); v.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf: // only the closest alternative is explained
			if i == 0 || c < n {
				n = c
			}
		default:
			n = min(n+c, math.MaxInt32)
		}
	}
	t.counts[v] = n
	return n
}

func leafCount(k santhosh.ErrorKind) int {
	switch k := k.(type) {
	case *kind.Required:
		return len(k.Missing)
	case *kind.AdditionalProperties:
		return len(k.Properties)
	}
	return 1
}

// schemaTokens returns the tokens of the JSON pointer in a schema URL.
func schemaTokens(schemaURL string) []string {
	_, fragment, _ := strings.Cut(schemaURL, "#")
	pointer, err := url.PathUnescape(fragment)
	if err != nil || !strings.HasPrefix(pointer, "/") {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens
}

// bracketFailure sets f for groups of causes and for failures about properties.
func bracketFailure(k santhosh.ErrorKind, f *failure) bool {
	switch k := k.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
	case *kind.AnyOf:
		f.keyword = "anyOf"
	case *kind.OneOf:
		f.keyword = "oneOf"
		if len(k.Subschemas) == 2 {
			f.got = [2]int(k.Subschemas)
		}
	case *kind.Required:
		f.keyword, f.names = "required", k.Missing
	case *kind.DependentRequired:
		f.keyword, f.names, f.because = "dependentRequired", k.Missing, k.Prop
	case *kind.Dependency:
		f.keyword, f.names, f.because = "dependencies", k.Missing, k.Prop
	case *kind.AdditionalProperties:
		f.keyword, f.names = "additionalProperties", k.Properties
	case *kind.PropertyNames:
		f.keyword, f.names = "propertyNames", []string{k.Property}
	default:
		return false
	}
	return true
}

// valueFailure sets f for keywords about values of any type, and about strings.
func valueFailure(k santhosh.ErrorKind, f *failure) bool {
	switch k := k.(type) {
	case *kind.Type:
		f.keyword, f.want = "type", k.Want
	case *kind.Enum:
		f.keyword, f.want, f.got = "enum", k.Want, k.Got
	case *kind.Const:
		f.keyword, f.want, f.got = "const", []any{k.Want}, k.Got
	case *kind.Format:
		f.keyword, f.want = "format", k.Want
	case *kind.Pattern:
		f.keyword, f.want = "pattern", k.Want
	case *kind.FalseSchema:
		f.keyword = "false"
	case *kind.Not:
		f.keyword = "not"
	case *kind.RefCycle:
		f.keyword = "$ref"
	default:
		return false
	}
	return true
}

func numberFailure(k santhosh.ErrorKind, f *failure) bool {
	var want *big.Rat
	switch k := k.(type) {
	case *kind.Minimum:
		f.keyword, want = "minimum", k.Want
	case *kind.Maximum:
		f.keyword, want = "maximum", k.Want
	case *kind.ExclusiveMinimum:
		f.keyword, want = "exclusiveMinimum", k.Want
	case *kind.ExclusiveMaximum:
		f.keyword, want = "exclusiveMaximum", k.Want
	case *kind.MultipleOf:
		f.keyword, want = "multipleOf", k.Want
	default:
		return false
	}
	digits, _ := want.FloatPrec() // exact, because it was read from JSON
	n, _ := decimal.Parse(want.FloatString(digits))
	f.want = n.String()
	return true
}

func sizeFailure(k santhosh.ErrorKind, f *failure) bool {
	switch k := k.(type) {
	case *kind.MinLength:
		f.keyword, f.want, f.got = "minLength", k.Want, k.Got
	case *kind.MaxLength:
		f.keyword, f.want, f.got = "maxLength", k.Want, k.Got
	case *kind.MinItems:
		f.keyword, f.want, f.got = "minItems", k.Want, k.Got
	case *kind.MaxItems:
		f.keyword, f.want, f.got = "maxItems", k.Want, k.Got
	case *kind.MinProperties:
		f.keyword, f.want, f.got = "minProperties", k.Want, k.Got
	case *kind.MaxProperties:
		f.keyword, f.want, f.got = "maxProperties", k.Want, k.Got
	case *kind.MinContains:
		f.keyword, f.want, f.got = "minContains", k.Want, len(k.Got)
	case *kind.MaxContains:
		f.keyword, f.want, f.got = "maxContains", k.Want, len(k.Got)
	case *kind.Contains:
		f.keyword, f.want, f.got = "contains", 1, 0
	case *kind.AdditionalItems:
		f.keyword, f.got = "additionalItems", k.Count
	case *kind.UniqueItems:
		f.keyword, f.got = "uniqueItems", k.Duplicates
	default:
		return false
	}
	return true
}

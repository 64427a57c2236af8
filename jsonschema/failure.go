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

// A failure is a keyword that a value does not satisfy, or several of them.
type failure struct {
	// keyword is "" for a failure that only brackets its causes, and "false" for a
	// schema that admits nothing.
	keyword string

	// schema and at are the tokens of JSON pointers: to the schema that has the
	// keyword, within its document, and to the value that failed. Of propertyNames,
	// that is the member.
	schema, at []string

	// want and got are the value of the keyword and what it was compared with:
	//
	//	type                                    []string
	//	enum, const                             []any, and the value
	//	format, pattern                         string
	//	bounds of a number, multipleOf          string
	//	bounds of a length or size, contains    int, and the int that was found
	//	uniqueItems, oneOf if two alternatives  nil, and their indexes, [2]int
	//	additionalItems                         nil, and how many there are
	want, got any

	// names are the properties that required, dependentRequired and dependencies
	// miss, because of the property named by because if it is not "", those that
	// additionalProperties refuses, or the one whose name propertyNames refuses.
	names   []string
	because string

	// causes are what a bracket holds, why each alternative of anyOf and oneOf
	// failed, and what propertyNames has against a name. More counts the problems of
	// causes that were left out.
	causes []*failure
	more   int
}

// Bounds on what is explained, after which problems are only counted.
const (
	maxFailures = 8192 // of one value
	maxCauses   = 64   // of one failure, alternatives aside
)

// failureOf translates what the library found. It removes the given number of tokens
// from the front of locations.
func failureOf(v *santhosh.ValidationError, tokens int) *failure {
	t := translator{tokens: tokens, left: maxFailures,
		failures: map[*santhosh.ValidationError]*failure{}, counts: map[*santhosh.ValidationError]int{}}
	return t.failure(v)
}

// A translator translates errors of the library. They can have causes in common.
type translator struct {
	tokens   int
	left     int // how many failures there may still be
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

// causesOf returns the causes to explain: all alternatives, since the nearest may be
// any of them, and otherwise the first, for the library looks at members in no order.
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

// compareCauses puts values that are wrong before values that are missing, and then
// orders them by location.
func compareCauses(a, b *santhosh.ValidationError) int {
	return cmp.Or(missingLast(a)-missingLast(b), slices.Compare(a.InstanceLocation, b.InstanceLocation))
}

func missingLast(v *santhosh.ValidationError) int {
	if _, ok := v.ErrorKind.(*kind.Required); ok {
		return 1
	}
	return 0
}

// count returns how many problems an error is.
func (t *translator) count(v *santhosh.ValidationError) int {
	n, known := t.counts[v]
	if known || len(v.Causes) == 0 {
		return max(n, leafCount(v.ErrorKind))
	}
	t.counts[v] = 1
	for i, cause := range v.Causes {
		switch c := t.count(cause); v.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf: // the nearest alternative is explained
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

// schemaTokens returns where in the document the schema of a URL is.
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

// bracketFailure is for what brackets its causes, and for what is about properties.
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

// valueFailure is for keywords about values of every type, and about texts.
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
	digits, _ := want.FloatPrec() // exact: it was read from JSON
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A failure is a violated keyword, or a group of failures.
type failure struct {
	kind santhosh.ErrorKind

	// schema and at are JSON pointers, split into tokens. schema leads to the schema with
	// the keyword, within its document. at leads to the value or, for propertyNames, to the member.
	schema, at []string

	// causes are the members of a group, the failures of each alternative of anyOf and
	// oneOf, or the failures of the name for propertyNames. more is the number of problems
	// of omitted causes.
	causes []*failure
	more   int
}

// Limits of an explanation. Problems beyond them are only counted.
const (
	maxFailures = 8192 // for one value; one with a long location counts for several
	maxCauses   = 64   // for one failure, except alternatives
)

// failureOf converts an error from the library. It removes the given number of tokens from
// the front of locations.
func failureOf(v *santhosh.ValidationError, tokens int) *failure {
	t := translator{tokens: tokens, left: maxFailures,
		failures: map[*santhosh.ValidationError]*failure{}, counts: map[*santhosh.ValidationError]int{}}
	return t.failure(v)
}

// A translator converts errors from the library, which may share causes.
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
	f := &failure{kind: v.ErrorKind, schema: schemaTokens(v.SchemaURL), at: v.InstanceLocation[min(t.tokens, len(v.InstanceLocation)):]}
	t.left -= 1 + f.length()/longLocation
	t.failures[v] = f
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

// longLocation is the length of a location, in bytes, that counts as another failure.
// Whoever sends the value chooses the names in it, and each problem has a copy of them.
const longLocation = 1 << 10

// length returns the number of bytes in the location of the value and of its schema.
func (f *failure) length() (n int) {
	for _, token := range f.at {
		n += len(token)
	}
	for _, token := range f.schema {
		n += len(token)
	}
	return n
}

// causesOf returns the causes to explain. For alternatives it returns all, because any may
// be the closest. Otherwise it returns the first ones in order, because the library reports
// them in random order.
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

// count returns the number of problems in an error.
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

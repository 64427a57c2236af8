// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/made"
)

// A Schema is a compiled schema. It is immutable and may be used concurrently.
// Get one from [Compile].
type Schema struct {
	options  Options
	maxWork  int   // the constant, except in tests
	document any   // schema as it was compiled, for explanations
	proof    *node // nil if the schema is outside the provable subset

	// validator compiles the validator when the proof fails for the first time. Most
	// schemas never need it.
	validator func() (*validator, error)

	filler func() *filler // fills in defaults; built on first use

	patterns *patterns

	size int // see Size

	unchecked []string
}

// Compile prepares raw, a JSON Schema, for validation. The dialect is 2020-12
// unless "$schema" names one of 2019-09, draft-07, draft-06 and draft-04.
//
// Compile never opens a file or a connection. It returns an error for malformed JSON and
// duplicate members, for a reference that leaves the document, unless it refers to a JSON
// Schema metaschema, for a schema that is too large, for an unknown dialect, and for a schema
// that the dialect's metaschema rejects. A schema is too large if it has more than 1 MiB or
// 10,000 JSON values, is nested deeper than 64 levels, or has references or regular
// expressions that expand to too much. A regular expression that Go cannot compile is not an
// error; see [Schema.Unchecked].
func Compile(raw []byte, opts *Options) (*Schema, error) {
	s := &Schema{options: opts.withDefaults(), maxWork: maxValidationWork}
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("jsonschema: schema of %d bytes exceeds the limit of %d", len(raw), maxBytes)
	}
	doc, terr := readTree(raw, maxDepth, maxNodes)
	if terr != nil {
		return nil, fmt.Errorf("jsonschema: schema %w", terr)
	}
	dialect, err := dialectOf(doc)
	if err != nil {
		return nil, err
	}
	locations := sumLocations(doc, 1)
	if locations > maxLocations {
		return nil, fmt.Errorf("jsonschema: the JSON pointers to the values of the schema have more than %d bytes; shorten names with many schemas below them", maxLocations)
	}
	s.document, s.patterns = doc, newPatterns()
	s.validator = sync.OnceValues(s.newValidator)
	s.filler = sync.OnceValue(func() *filler { return newFiller(doc) })
	var beyond string
	s.proof, beyond = buildProof(doc, dialect, s.patterns, s.options)
	if beyond != "" { // otherwise it is known to be a valid schema
		v, err := s.validator()
		if err != nil {
			return nil, err
		}
		s.unchecked = v.unchecked
	}
	s.size = compiledSize(len(raw), nodes(doc), locations, s.patterns)
	return s, nil
}

// compiledSize estimates the memory for a schema, including its validator, which is compiled
// later. The factors were measured with schemas that need much for their length: see the
// test of Size in internal/test/bounds.
func compiledSize(length, values, locations int, p *patterns) int {
	const perValue, perPattern, perPatternByte, perInstruction, copiesOfLocations = 1536, 1024, 8, 128, 3
	size := 4096 + length + perValue*values + copiesOfLocations*locations + perInstruction*(maxPatternSize-p.left)
	for text := range p.known {
		size += perPattern + perPatternByte*len(text)
	}
	return size
}

// Size returns an upper estimate of the memory that the Schema uses, in bytes, so that a
// cache of schemas can be bounded. A short schema can use much: 50 bytes of regular
// expressions can expand to megabytes.
func (s *Schema) Size() int {
	s.mustBeMade()
	return s.size
}

// Limits of a schema. Schemas of tools have a few KiB; the largest public ones, which
// describe the files of whole programs, are rejected.
const (
	maxBytes = 1 << 20
	maxDepth = 64
	maxNodes = 10_000 // JSON values; each costs more than a KiB of memory once compiled

	// maxLocations bounds the length of the JSON pointers to all values together. The library
	// keeps several copies of them, and a long name is a part of every pointer below it.
	maxLocations = 4 * maxBytes
)

// Limits of validating a value.
const (
	maxInputDepth     = 128
	maxValidationWork = 3_000_000 // see budget; takes a few seconds at most
)

// sumLocations returns the length of the JSON pointers to v and the values in it. The
// pointer to v has the given length.
func sumLocations(v any, length int) int {
	sum := length
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			sum += sumLocations(member, length+len(name)+1)
		}
	case []any:
		for _, item := range v {
			sum += sumLocations(item, length+len("/100"))
		}
	}
	return sum
}

func (s *Schema) newValidator() (*validator, error) {
	if s.options.AssertFormats {
		return newValidator(s.document, s.patterns, formats)
	}
	return newValidator(s.document, s.patterns, nil)
}

// mustBeMade panics unless the Schema was created by Compile.
func (s *Schema) mustBeMade() {
	made.Check(s != nil && s.validator != nil, "jsonschema: a Schema", "Compile")
}

// Unchecked returns JSON pointers to the keywords of the schema that [Schema.Validate] does
// not check as they are written, sorted, or nil if there are none. Validate then accepts
// more, and never rejects a valid value. These are:
//
//   - "pattern" and members of "patternProperties" with a regular expression that is valid
//     in ECMAScript but not in Go, such as one with a lookahead. They are ignored, and so is
//     additionalProperties next to such a patternProperties.
//   - "not", "oneOf", "if" and "maxContains" if they depend on such a regular expression, or
//     on a format that is not asserted: "oneOf" is validated like anyOf, "if" requires only
//     its else of a value that certainly fails it, and the others are ignored.
//   - "unevaluatedProperties" and "unevaluatedItems" if what is evaluated depends on these.
//
// A format that is not asserted is an annotation, and not listed itself.
func (s *Schema) Unchecked() []string {
	s.mustBeMade()
	return slices.Clone(s.unchecked)
}

// Options configure [Compile] and the resulting Schema. A nil *Options is equivalent to the
// zero Options. Compile copies the options.
type Options struct {
	// OptionalNull treats null as absent for a property that is not required and whose
	// schema does not allow null. Models often send null for an argument that they mean to omit.
	OptionalNull bool

	// AssertFormats checks the formats date-time, date, email and uri. Other formats are
	// never checked. Without this option, all formats are annotations, as is the default in
	// JSON Schema 2020-12. Set it for a schema inferred by For: an invalid date-time cannot
	// be decoded into a time.Time, and the validator explains that better than the decoder.
	AssertFormats bool

	// MaxInputBytes limits the length of validated values. Zero means 16 MiB. A negative
	// value means no limit, for values whose length is limited already.
	MaxInputBytes int
}

// withDefaults returns a copy of o, which may be nil, with defaults applied.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.MaxInputBytes = cmp.Or(c.MaxInputBytes, 16<<20); c.MaxInputBytes < 0 {
		c.MaxInputBytes = math.MaxInt
	}
	return c
}

// A dialect is a version of JSON Schema. Later versions are greater.
type dialect int

const (
	draft4       dialect = 4
	draft6       dialect = 6
	draft7       dialect = 7
	dialect2019  dialect = 2019
	dialect2020  dialect = 2020
	dialectNames         = "2020-12, 2019-09, draft-07, draft-06 and draft-04"
)

var dialects = map[string]dialect{
	"json-schema.org/schema":               dialect2020,
	"json-schema.org/draft/2020-12/schema": dialect2020,
	"json-schema.org/draft/2019-09/schema": dialect2019,
	"json-schema.org/draft-07/schema":      draft7,
	"json-schema.org/draft-06/schema":      draft6,
	"json-schema.org/draft-04/schema":      draft4,
}

// dialectOf returns the dialect of a schema document.
func dialectOf(doc any) (dialect, error) {
	obj, isObject := doc.(map[string]any)
	if _, isBool := doc.(bool); !isObject && !isBool {
		return 0, errors.New("jsonschema: a schema is a JSON object or a boolean")
	}
	named, ok := obj["$schema"]
	if !ok {
		return dialect2020, nil
	}
	uri, _ := named.(string)
	key := strings.TrimSuffix(uri, "#")
	key = strings.TrimPrefix(key, "http://")
	key = strings.TrimPrefix(key, "https://")
	if d := dialects[key]; d != 0 {
		return d, nil
	}
	return 0, fmt.Errorf("jsonschema: unknown dialect %q in $schema; known are "+dialectNames, named)
}

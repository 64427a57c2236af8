// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/schematree"
)

// A Schema is a compiled schema. It is immutable and may be used concurrently.
// Get one from [Compile].
type Schema struct {
	options  Options
	document any   // schema as it was compiled, for explanations
	proof    *node // nil if the schema is outside the provable subset

	// validator compiles the validator when the proof fails for the first time. Most
	// schemas never need it.
	validator func() (*validator, error)

	filler func() *filler // fills in defaults; built on first use

	patterns patterns

	unchecked []string
}

// Compile prepares raw, a JSON Schema, for validation. The dialect is 2020-12
// unless "$schema" names one of 2019-09, draft-07, draft-06 and draft-04.
//
// Compile never opens a file or a connection. It returns an error for malformed JSON and
// duplicate members, for a reference that leaves the document, unless it refers to a JSON
// Schema metaschema, for a schema that exceeds the limits of opts, for an unknown dialect,
// and for a schema that the dialect's metaschema rejects. A regular expression that Go
// cannot compile is not an error; see [Schema.Unchecked].
func Compile(raw []byte, opts *Options) (*Schema, error) {
	s := &Schema{options: opts.withDefaults()}
	if len(raw) > s.options.MaxBytes {
		return nil, fmt.Errorf("jsonschema: schema of %d bytes exceeds the limit of %d", len(raw), s.options.MaxBytes)
	}
	doc, terr := readTree(raw, s.options.MaxDepth, s.options.MaxNodes)
	if terr != nil {
		return nil, fmt.Errorf("jsonschema: schema %w", terr)
	}
	dialect, err := dialectOf(doc)
	if err != nil {
		return nil, err
	}
	s.document = doc
	if s.patterns, err = patternsOf(doc); err != nil {
		return nil, err
	}
	s.unchecked = s.patterns.dropBad(doc)
	if err := checkWork(doc); err != nil {
		return nil, err
	}
	s.validator = sync.OnceValues(s.newValidator)
	s.filler = sync.OnceValue(func() *filler { return newFiller(doc) })
	var beyond string
	if s.proof, beyond = buildProof(doc, dialect, s.patterns, s.options); beyond == "" {
		return s, nil // it is known to be a valid schema
	}
	if _, err := s.validator(); err != nil {
		return nil, err
	}
	return s, nil
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
// not check, sorted, or nil if all keywords are checked. These are "pattern" and
// "patternProperties" with a regular expression that is valid in ECMAScript but not in Go,
// such as one with a lookahead. Next to such a patternProperties, additionalProperties is
// not checked either.
func (s *Schema) Unchecked() []string {
	s.mustBeMade()
	return slices.Clone(s.unchecked)
}

// dropBad removes the keywords whose regular expression does not compile, and returns
// pointers to them.
func (p patterns) dropBad(doc any) (dropped []string) {
	schematree.Walk(doc, "", func(pointer string, schema any) {
		obj, _ := schema.(map[string]any)
		if text, ok := obj["pattern"].(string); ok && p[text] == nil {
			delete(obj, "pattern")
			dropped = append(dropped, pointer+"/pattern")
		}
		byPattern, _ := obj["patternProperties"].(map[string]any)
		for text := range byPattern {
			if p[text] != nil {
				continue
			}
			delete(byPattern, text)
			obj["additionalProperties"] = true // the removed pattern might match any name
			dropped = append(dropped, pointer+"/patternProperties/"+schematree.Escape(text))
		}
	})
	slices.Sort(dropped)
	return dropped
}

// Options configure [Compile] and the resulting Schema. A nil *Options is equivalent to the
// zero Options, which has the default for every limit. Compile copies the options.
type Options struct {
	// OptionalNull treats null as absent for a property that is not required and whose
	// schema does not allow null. Models often send null for an argument that they mean to omit.
	OptionalNull bool

	// AssertFormats checks the formats date-time, date, email and uri. Other formats are
	// never checked. Without this option, all formats are annotations, as is the default in
	// JSON Schema 2020-12. Set it for a schema inferred by For: an invalid date-time cannot
	// be decoded into a time.Time, and the validator explains that better than the decoder.
	AssertFormats bool

	// MaxBytes, MaxDepth and MaxNodes limit the schema: its length, its nesting, and its
	// number of JSON values. Zero means 1 MiB, 64 and 10,000.
	MaxBytes, MaxDepth, MaxNodes int

	// MaxInputBytes and MaxInputDepth limit the length and the nesting of validated
	// values. Zero means 16 MiB and 128.
	MaxInputBytes, MaxInputDepth int

	// MaxWork limits the work, and so the time, of validating one value. Each application
	// of a schema to a value counts as 1. Applications that take longer than half a
	// microsecond, for example to long strings or large numbers, count as more. If the
	// limit is exceeded, Validate returns an error that wraps ErrTooMuchWork. Zero means 3
	// million, which takes a few seconds at most.
	MaxWork int
}

// withDefaults returns a copy of o, which may be nil, with defaults applied.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, 1<<20)
	c.MaxDepth = cmp.Or(c.MaxDepth, 64)
	c.MaxNodes = cmp.Or(c.MaxNodes, 10_000)
	c.MaxInputBytes = cmp.Or(c.MaxInputBytes, 16<<20)
	c.MaxInputDepth = cmp.Or(c.MaxInputDepth, 128)
	c.MaxWork = cmp.Or(c.MaxWork, 3_000_000)
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

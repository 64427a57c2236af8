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
)

// A Schema is a compiled schema. It is immutable and may be used concurrently.
// Get one from [Compile].
type Schema struct {
	options  Options
	document any   // the schema as it was compiled, to explain with
	proof    *node // nil if the schema is beyond what can be proved

	// validator is compiled when the proof fails for the first time: most schemas
	// never need it.
	validator func() (*validator, error)

	patterns patterns

	unchecked []string
}

// Compile prepares raw, a JSON Schema, for validation. The dialect is 2020-12
// unless "$schema" names one of 2019-09, draft-07, draft-06 and draft-04.
//
// Compile never opens a file or a connection: a reference that leaves the
// document is an error, unless it is to a metaschema of JSON Schema itself.
// Other errors are JSON that is not well-formed or names a member twice, a schema
// beyond the bounds of opts, an unknown dialect, and what the dialect's
// metaschema does not allow. A regular expression that Go cannot compile is no
// error; see [Schema.Unchecked].
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
	var beyond string
	if s.proof, beyond = buildProof(doc, dialect, s.patterns, s.options); beyond == "" {
		return s, nil // it is a valid schema
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

// Unchecked returns JSON pointers to the keywords of the schema that
// [Schema.Validate] does not check, sorted; nil if it checks all. These are
// "pattern" and "patternProperties" whose regular expression is legal in
// ECMAScript but not in Go, such as one that looks ahead. Next to such a
// patternProperties, additionalProperties cannot be checked either.
func (s *Schema) Unchecked() []string { return slices.Clone(s.unchecked) }

// dropBad removes from the schema what has a regular expression that does not
// compile, and returns where that was.
func (p patterns) dropBad(doc any) (dropped []string) {
	walkSchemas(doc, "", func(pointer string, schema any) {
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
			obj["additionalProperties"] = true // any name may have been meant by it
			dropped = append(dropped, pointer+"/patternProperties/"+escapeToken(text))
		}
	})
	slices.Sort(dropped)
	return dropped
}

// Options says how [Compile] reads a schema and how the result validates. A nil
// *Options is the zero Options, in which every bound has its default. Compile
// copies the options.
type Options struct {
	// OptionalNull makes a null count as absent where it stands for a property
	// that is not required and whose schema does not admit null. Models often
	// send null for an argument that they mean to leave out.
	OptionalNull bool

	// AssertFormats checks the formats date-time, date, email and uri. All
	// other formats, and these without the option, are annotations, as they are
	// by default in JSON Schema 2020-12. It is worth setting for a schema that
	// For inferred: what is no date-time cannot be decoded into a time.Time, and
	// the validator's text explains that better than the decoder's.
	AssertFormats bool

	// MaxBytes, MaxDepth and MaxNodes bound the schema: its length, the nesting of
	// its objects and arrays, and how many JSON values it is made of. Zero means
	// 1 MiB, 64 and 10,000.
	MaxBytes, MaxDepth, MaxNodes int

	// MaxInputBytes and MaxInputDepth bound what is validated: its length and its
	// nesting. Zero means 16 MiB and 128.
	MaxInputBytes, MaxInputDepth int

	// MaxWork bounds the work of validating one value, and so the time. It counts
	// how often a schema is applied to a value; what takes longer than half a
	// microsecond, as long texts and large numbers do, counts more than once. If it
	// does not suffice, Validate returns an error that wraps ErrTooMuchWork. Zero
	// means 3 million, which is a few seconds at most.
	MaxWork int
}

// withDefaults returns a copy of o, which may be nil, with every bound set.
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

// A dialect is a version of JSON Schema, by the year or number that orders it.
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

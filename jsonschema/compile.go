// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"slices"
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

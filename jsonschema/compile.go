// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-psi/psi/internal/validator"
)

// A Schema is a compiled schema. It is immutable and may be used concurrently.
// Get one from [Compile].
type Schema struct {
	options  Options
	document any // the schema as it was compiled, to explain with
	validate validator.Validate
	proof    *node // nil if the schema goes beyond what can be proved

	// nullsByTrial is OptionalNull for the full validator, which knows nothing of it.
	nullsByTrial bool

	unchecked []string
}

// Compile prepares raw, a JSON Schema, for validation. The dialect is 2020-12
// unless "$schema" names one of 2019-09, draft-07, draft-06 and draft-04.
//
// What goes beyond a subset (see "Validation" in the comment of the package) needs
// package jsonschema/full; without it, such a schema is an error that says so.
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
	s.unchecked = dropBadPatterns(doc)
	if err := checkWork(doc); err != nil {
		return nil, err
	}
	if s.validate, err = s.validator(dialect); err != nil {
		return nil, err
	}
	return s, nil
}

// validator returns the one that fits the document, and sets the proof.
func (s *Schema) validator(d dialect) (validator.Validate, error) {
	var assert map[string]func([]byte) bool
	if s.options.AssertFormats {
		assert = formats
	}
	var beyond string
	s.proof, beyond = buildProof(s.document, d, s.options)
	switch {
	case beyond == "": // it is valid
		return checkSubset(s.document, &s.options, assert), nil
	case validator.Full == nil:
		return nil, fmt.Errorf("jsonschema: %s is beyond the subset of JSON Schema that is built in; "+
			`import _ "github.com/go-psi/psi/jsonschema/full" for all of it`, beyond)
	}
	s.nullsByTrial = s.options.OptionalNull
	validate, err := validator.Full(s.document, assert)
	if err != nil {
		return nil, compileError(err, s.document)
	}
	return validate, nil
}

// Unchecked returns JSON pointers to the keywords of the schema that
// [Schema.Validate] does not check, sorted; nil if it checks all. These are
// "pattern" and "patternProperties" whose regular expression is legal in
// ECMAScript but not in Go, such as one that looks ahead. Next to such a
// patternProperties, additionalProperties cannot be checked either.
func (s *Schema) Unchecked() []string { return slices.Clone(s.unchecked) }

// dropBadPatterns removes from the schema what has a regular expression that
// does not compile, and returns where that was.
func dropBadPatterns(doc any) (dropped []string) {
	walkSchemas(doc, "", func(pointer string, schema any) {
		obj, _ := schema.(map[string]any)
		if p, ok := obj["pattern"].(string); ok && !compiles(p) {
			delete(obj, "pattern")
			dropped = append(dropped, pointer+"/pattern")
		}
		byPattern, _ := obj["patternProperties"].(map[string]any)
		for p := range byPattern {
			if compiles(p) {
				continue
			}
			delete(byPattern, p)
			obj["additionalProperties"] = true // any name may have been meant by p
			dropped = append(dropped, pointer+"/patternProperties/"+escapeToken(p))
		}
	})
	slices.Sort(dropped)
	return dropped
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

// compileError words an error of the full validator's compiler.
func compileError(err error, doc any) error {
	if external, ok := errors.AsType[*validator.ExternalError](err); ok {
		return fmt.Errorf("jsonschema: reference to %q leaves the schema; only references within it are followed", external.URL)
	}
	if invalid, ok := errors.AsType[*validator.InvalidError](err); ok {
		const shown = 3
		return fmt.Errorf("jsonschema: not a valid schema: %w", explain(nil, doc, shown, invalid.Failure))
	}
	return fmt.Errorf("jsonschema: %w", err)
}

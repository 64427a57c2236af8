// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"errors"
	"fmt"
	"strconv"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// Validate reports whether data, one JSON value, conforms to the schema. It
// returns nil if so and otherwise a *[ValidationError], whose text is meant for
// a model to read and act on. Numbers are compared exactly.
//
// Data is first read once, without allocating, for a proof that it is valid.
// Without that proof, which does not say that data is invalid, it is decoded and
// validated in full. Data that is not well-formed JSON, names a member of an
// object twice or exceeds the bounds of [Options] is not valid.
func (s *Schema) Validate(data []byte) error {
	if len(data) > s.options.MaxInputBytes {
		return &ValidationError{Problems: []Problem{{
			Keyword:  "size",
			Expected: "at most " + strconv.Itoa(s.options.MaxInputBytes) + " bytes",
			Got:      strconv.Itoa(len(data)) + " bytes",
		}}}
	}
	if s.proves(data) {
		return nil
	}
	return s.validateFull(data)
}

// validateFull decides, and explains, without the proof.
func (s *Schema) validateFull(data []byte) error {
	tree, terr := readTree(data, s.options.MaxInputDepth, unbounded)
	if terr != nil {
		return &ValidationError{Problems: []Problem{{
			Pointer:  terr.pointer,
			Keyword:  "syntax",
			Expected: "one well-formed JSON value",
			Got:      terr.reason,
		}}}
	}
	full, err := s.full()
	if err != nil {
		return &ValidationError{Problems: []Problem{{Keyword: "schema", Expected: "a valid schema", Got: err.Error()}}}
	}
	verr := run(full, tree)
	if verr != nil && s.options.OptionalNull {
		tree, verr = withoutNulls(full, tree, verr)
	}
	if verr == nil {
		return nil
	}
	e := explainer{document: s.document, tree: tree, limit: maxProblems}
	e.collect(verr)
	return e.err()
}

// run returns what the validator says of a tree, nil if it is valid.
func run(full *santhosh.Schema, tree any) *santhosh.ValidationError {
	err := full.Validate(tree)
	if err == nil {
		return nil
	}
	verr, ok := errors.AsType[*santhosh.ValidationError](err)
	if !ok {
		panic(fmt.Sprintf("jsonschema: validator returned a %T", err))
	}
	return verr
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import "strconv"

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
	return s.validateTree(data)
}

// validateTree decides, and explains, without the proof.
func (s *Schema) validateTree(data []byte) error {
	tree, terr := readTree(data, s.options.MaxInputDepth, unbounded)
	if terr != nil {
		return &ValidationError{Problems: []Problem{{
			Pointer:  terr.pointer,
			Keyword:  "syntax",
			Expected: "one well-formed JSON value",
			Got:      terr.reason,
		}}}
	}
	validate, err := s.validator()
	if err != nil {
		return err
	}
	failure := validate(tree)
	if failure != nil && s.options.OptionalNull {
		tree, failure = withoutNulls(validate, tree, failure)
	}
	if failure == nil {
		return nil
	}
	return explain(s.document, tree, maxProblems, failure)
}

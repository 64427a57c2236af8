// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"context"
	"strconv"
)

// Validate reports whether data, one JSON value, conforms to the schema. It
// returns nil if so and a *[ValidationError] if not, whose text is meant for a model
// to read and act on. Numbers are compared exactly.
//
// Any other error means that Validate does not know: it wraps the cause of ctx if
// ctx has ended, and [ErrTooMuchWork] if Options.MaxWork did not suffice.
//
// Data is first read once, without allocating, for a proof that it is valid.
// Without that proof, which does not say that data is invalid, it is decoded and
// validated in full. Data that is not well-formed JSON, names a member of an
// object twice or exceeds the bounds of [Options] is not valid.
func (s *Schema) Validate(ctx context.Context, data []byte) error {
	if len(data) > s.options.MaxInputBytes {
		return &ValidationError{Problems: []Problem{{
			Keyword:  "size",
			Expected: "at most " + strconv.Itoa(s.options.MaxInputBytes) + " bytes",
			Got:      strconv.Itoa(len(data)) + " bytes",
		}}}
	}
	if s.proves(ctx, data) {
		return nil
	}
	return s.validateTree(ctx, data)
}

// validateTree decides, and explains, without the proof.
func (s *Schema) validateTree(ctx context.Context, data []byte) error {
	b := budgetOf(ctx, s.options.MaxWork)
	return s.validateWithin(&b, data)
}

func (s *Schema) validateWithin(b *budget, data []byte) error {
	if err := stoppedBy(b.ctx); err != nil {
		return err
	}
	tree, terr := readTree(data, s.options.MaxInputDepth, unbounded)
	if terr != nil {
		return &ValidationError{Problems: []Problem{{
			Pointer:  terr.pointer,
			Keyword:  "syntax",
			Expected: "one well-formed JSON value",
			Got:      terr.reason,
		}}}
	}
	v, err := s.validator()
	if err != nil {
		return err
	}
	failed, err := v.validate(b, tree)
	if failed != nil && s.options.OptionalNull {
		tree, failed, err = v.withoutNulls(b, tree, failed)
	}
	if failed == nil || err != nil {
		return err
	}
	return explain(s.document, tree, maxProblems, failureOf(failed, 1))
}

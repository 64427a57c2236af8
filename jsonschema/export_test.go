// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"context"
	"errors"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// HasProof reports whether values can be proved to be valid for s.
func HasProof(s *Schema) bool { return s.proof != nil }

// IsVouched reports whether Compile accepted s without validating it against its
// metaschema.
func IsVouched(s *Schema) bool {
	dialect, err := dialectOf(s.document)
	if err != nil {
		return false
	}
	_, beyond := buildProof(s.document, dialect, s.patterns, s.options)
	return beyond == ""
}

// CompileValidator compiles the validator of s, as its first use would.
func CompileValidator(s *Schema) error {
	_, err := s.validator()
	return err
}

// Proves validates data using only the proof.
func Proves(s *Schema, data []byte) bool { return s.proves(context.Background(), data) }

// ValidateTree validates data without the proof.
func ValidateTree(s *Schema, data []byte) error { return s.validateTree(context.Background(), data) }

// Work returns the work of validating data.
func Work(s *Schema, data []byte) (work int, err error) {
	b := budgetOf(context.Background(), s.maxWork)
	err = s.validateWithin(&b, data)
	return s.maxWork - b.left, err
}

// LimitWork limits the work of a validation by s, and returns s.
func LimitWork(s *Schema, work int) *Schema {
	s.maxWork = work
	return s
}

// RememberAfter makes s remember outcomes after the given work.
func RememberAfter(s *Schema, work int) error {
	v, err := s.validator()
	if err == nil {
		v.rememberAfter = work
	}
	return err
}

// ValidateWithLibrary is ValidateTree without gates.
func ValidateWithLibrary(s *Schema, data []byte) error {
	tree, terr := readTree(data, maxInputDepth, unbounded)
	if terr != nil {
		return terr
	}
	c := newCompiler(s.patterns, nil)
	root, err := compileAt(c, s.document)
	if err != nil {
		return err
	}
	relax(surveyOf(append(anchored(c, s.document), root)), s.document, nil)
	if failed, ok := errors.AsType[*santhosh.ValidationError](root.Validate(tree)); ok {
		return explain(s.document, tree, maxProblems, failureOf(failed, 0))
	}
	return nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"context"
	"errors"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// HasProof reports whether s is one that values can be proved to conform to.
func HasProof(s *Schema) bool { return s.proof != nil }

// IsVouched reports whether Compile took s for a valid schema without its
// metaschema.
func IsVouched(s *Schema) bool {
	dialect, err := dialectOf(s.document)
	if err != nil {
		return false
	}
	_, beyond := buildProof(s.document, dialect, s.patterns, s.options)
	return beyond == ""
}

// CompileValidator compiles the validator of s, as its first use does.
func CompileValidator(s *Schema) error {
	_, err := s.validator()
	return err
}

// Proves runs the proof alone.
func Proves(s *Schema, data []byte) bool { return s.proves(context.Background(), data) }

// ValidateTree runs all but the proof.
func ValidateTree(s *Schema, data []byte) error { return s.validateTree(context.Background(), data) }

// Work returns how much work the validator has with data.
func Work(s *Schema, data []byte) (work int, err error) {
	b := budgetOf(context.Background(), s.options.MaxWork)
	err = s.validateWithin(&b, data)
	return s.options.MaxWork - b.left, err
}

// RememberAfter makes s remember outcomes after so much work.
func RememberAfter(s *Schema, work int) error {
	v, err := s.validator()
	if err == nil {
		v.rememberAfter = work
	}
	return err
}

// ValidateWithLibrary is ValidateTree without gates.
func ValidateWithLibrary(s *Schema, data []byte) error {
	tree, terr := readTree(data, s.options.MaxInputDepth, unbounded)
	if terr != nil {
		return terr
	}
	root, err := compileAt(newCompiler(s.patterns, nil), s.document)
	if err != nil {
		return err
	}
	if failed, ok := errors.AsType[*santhosh.ValidationError](root.Validate(tree)); ok {
		return explain(s.document, tree, maxProblems, failureOf(failed, 0))
	}
	return nil
}

// Nearest is the search for the name that was meant.
var Nearest = nearest

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

// HasProof reports whether s is one that values can be proved to conform to.
func HasProof(s *Schema) bool { return s.proof != nil }

// IsVouched reports whether Compile took s for a valid schema without its
// metaschema.
func IsVouched(s *Schema) bool {
	dialect, err := dialectOf(s.document)
	if err != nil {
		return false
	}
	_, beyond := buildProof(s.document, dialect, s.options)
	return beyond == ""
}

// CompileValidator compiles the validator of s, as its first use does.
func CompileValidator(s *Schema) error {
	_, err := s.validator()
	return err
}

// Proves runs the proof alone.
func Proves(s *Schema, data []byte) bool { return s.proves(data) }

// ValidateTree runs all but the proof.
func ValidateTree(s *Schema, data []byte) error { return s.validateTree(data) }

// Nearest is the search for the name that was meant.
var Nearest = nearest

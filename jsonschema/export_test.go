// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import "github.com/go-psi/psi/internal/validator"

// HasProof reports whether s is one that values can be proved to conform to.
func HasProof(s *Schema) bool { return s.proof != nil }

// IsBuiltIn reports whether s is within the subset that needs no full validator.
func IsBuiltIn(s *Schema) bool {
	dialect, err := dialectOf(s.document)
	if err != nil {
		return false
	}
	_, beyond := buildProof(s.document, dialect, s.options)
	return beyond == ""
}

// Proves runs the proof alone.
func Proves(s *Schema, data []byte) bool { return s.proves(data) }

// Full returns the schema as the full validator compiles it, without a proof.
func Full(s *Schema) (*Schema, error) {
	full := &Schema{options: s.options, document: s.document, nullsByTrial: s.options.OptionalNull}
	var assert map[string]func([]byte) bool
	if s.options.AssertFormats {
		assert = formats
	}
	var err error
	full.validate, err = validator.Full(s.document, assert)
	return full, err
}

// ValidateTree runs all but the proof.
func ValidateTree(s *Schema, data []byte) error { return s.validateTree(data) }

// Nearest is the search for the name that was meant.
var Nearest = nearest

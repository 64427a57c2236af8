// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

// HasProof reports whether s is within the subset that can be proved.
func HasProof(s *Schema) bool { return s.proof != nil }

// Proves runs the proof alone.
func Proves(s *Schema, data []byte) bool { return s.proves(data) }

// CompileFull compiles the schema with the full validator alone.
func CompileFull(s *Schema) error {
	_, err := s.full()
	return err
}

// ValidateFull runs the full validator alone.
func ValidateFull(s *Schema, data []byte) error { return s.validateFull(data) }

// Nearest is the search for the name that was meant.
var Nearest = nearest

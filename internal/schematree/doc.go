// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package schematree visits the subschemas of a decoded JSON Schema, and resolves JSON
// pointers (RFC 6901) and local references in it.
package schematree

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package schematree visits the subschemas of a decoded JSON Schema, resolves JSON pointers
// (RFC 6901) and local references in it, and estimates what its patterns cost.
package schematree

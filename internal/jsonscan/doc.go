// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package jsonscan reads JSON strictly and in one pass, without building a
// tree and, for messages of ordinary shape, without allocating.
//
// Strict means RFC 8259 plus what a protocol peer must be able to rely on: member names are
// case-sensitive, an object has no duplicate members, text is valid UTF-8, without unpaired
// surrogate escapes, nesting is bounded, and only white space follows the value. Two
// readers of the same bytes therefore never see different messages.
//
// A [Scanner] is driven by its caller, which walks the objects it cares about and reads
// everything else as raw bytes. These are validated as well.
package jsonscan

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package jsonscan reads JSON strictly and in one pass, without building a
// tree and, for messages of ordinary shape, without allocating.
//
// Strict means RFC 8259 plus what a protocol peer must be able to rely on:
// member names are compared with case, an object does not name a member twice,
// text is valid UTF-8 (unpaired surrogate escapes included), nesting is bounded
// and nothing but white space follows the value. Two readers of the same bytes
// therefore never see two different messages.
//
// A [Scanner] is pulled: the caller walks the objects it cares about and takes
// everything else as raw bytes, which are validated on the way.
package jsonscan

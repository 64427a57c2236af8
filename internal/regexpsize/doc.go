// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package regexpsize estimates what a regular expression costs before it is compiled.
package regexpsize

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package side says what an implementation must be able to do to be compared.
package side

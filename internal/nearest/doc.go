// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package nearest finds the name that was probably meant by a mistyped one.
package nearest

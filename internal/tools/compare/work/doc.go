// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package work implements the tools served by all sides of the comparison.
package work

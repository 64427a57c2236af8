// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package psi adapts psi for the comparison.
package psi

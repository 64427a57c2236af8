// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package psi is psi in the comparison.
package psi

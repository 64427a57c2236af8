// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package leak checks that no goroutines are left running after tests.
package leak

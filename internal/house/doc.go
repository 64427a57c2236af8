// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package house holds no code. Its tests hold the rules of the repository that no
// linter knows, by reading the source tree: see rules in rules_test.go.
package house

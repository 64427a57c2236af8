// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package house contains only tests. They read the source tree and enforce rules of the
// repository that no linter knows; see rules in rules_test.go.
package house

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build race

package middleware_test

// raceEnabled reports whether the race detector, which allocates, is enabled.
const raceEnabled = true

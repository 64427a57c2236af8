// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !race

package mcptest_test

// raceEnabled reports whether the race detector, which slows everything down, is enabled.
const raceEnabled = false

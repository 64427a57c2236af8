// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build race

package mcptest_test

// raceEnabled says that the race detector, which makes everything slow, is on.
const raceEnabled = true

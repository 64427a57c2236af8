// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build race

package middleware_test

// The race detector allocates, too.
const raceEnabled = true

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !race

package bounds_test

const raceEnabled = false

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build race

package auth_test

const raceEnabled = true // the race detector allocates, too

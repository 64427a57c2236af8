// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !race

package mcphttp_test

const raceEnabled = false

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build race

package mcp_test

// The race detector allocates memory itself.
func init() { raceEnabled = true }

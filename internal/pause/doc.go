// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package pause waits: for a duration or the end of a context, and between attempts.
package pause

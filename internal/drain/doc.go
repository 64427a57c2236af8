// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package drain counts work in flight, so that one can wait for its end.
package drain

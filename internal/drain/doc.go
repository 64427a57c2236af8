// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package drain counts work in flight, so that callers can wait for it to end.
package drain

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package flight lets callers that need the same result at the same time share one
// execution.
package flight

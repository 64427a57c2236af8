// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package made provides the panic of types whose zero value cannot be used.
package made

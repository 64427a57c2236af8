// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package made has the panic of types whose zero value does not work.
package made

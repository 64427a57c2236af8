// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package side defines what an implementation must provide to be compared.
package side

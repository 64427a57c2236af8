// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mistakes has no code: its tests are a table of the mistakes that programs make
// when they register and configure handlers. Each must be a panic or an error that names
// the place and the remedy.
package mistakes

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mistakes contains only tests. They are a table of mistakes that programs make
// when they register and configure handlers. Each must cause a panic or an error that names
// the place and the remedy.
package mistakes

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package refresh marks requests that must not be answered with what is kept: their sender
// knows that it is out of date.
package refresh

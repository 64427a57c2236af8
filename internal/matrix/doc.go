// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package matrix has no code: its tests try every method on every path to a server, as
// callers with different permissions, and check who the handlers think is calling and
// what the callers learn.
package matrix

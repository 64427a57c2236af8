// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package pause lets time pass, for as long as there is a reason to wait.
package pause

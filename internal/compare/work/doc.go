// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package work has the tools that all sides of the comparison serve.
package work

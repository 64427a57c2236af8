// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package network tells network addresses apart by whom they belong to.
package network

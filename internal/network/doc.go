// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package network classifies network addresses: by caller, and by who can reach them.
package network

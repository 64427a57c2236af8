// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package network classifies network addresses by owner: a caller, or this machine.
package network

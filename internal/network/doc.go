// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package network classifies network addresses by who owns them: a caller, or this machine.
package network

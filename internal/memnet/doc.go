// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package memnet is a network in memory for tests of HTTP servers: it has no
// ports, and works inside a testing/synctest bubble.
package memnet

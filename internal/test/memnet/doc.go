// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package memnet provides an in-memory network for tests of HTTP servers. It needs no
// ports, and works inside a testing/synctest bubble.
package memnet

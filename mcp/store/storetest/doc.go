// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package storetest tests implementations of [store.Store]. The test of an
// implementation is one call:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return openStore(t) })
//	}
//
// [Tests] returns the same tests individually, for example to run each one in a bubble of
// testing/synctest.
//
// [Disturb] is for implementations that use an engine over a network: it checks what they
// guarantee while connections break and nodes are killed.
//
// This package is stable, as docs/stability.md defines it.
package storetest

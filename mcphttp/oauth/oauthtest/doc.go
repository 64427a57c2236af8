// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package oauthtest tests implementations of [oauth.Store]. To test an implementation, call
// [Run]:
//
//	func TestStore(t *testing.T) {
//		oauthtest.Run(t, func(t *testing.T) oauth.Store { return openStore(t) })
//	}
//
// This package is stable, as docs/stability.md defines it.
package oauthtest

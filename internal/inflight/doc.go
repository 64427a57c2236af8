// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package inflight knows the calls that a server may be working on. On a stream that does
// not name the call a message is about, they decide whose message it is.
package inflight

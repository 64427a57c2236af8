// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package inflight tracks the calls that a server may be working on. If a stream does not
// name the call that a message belongs to, the calls in flight determine it.
package inflight

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package counters is an extension of the protocol with a method and a notification of its
// own: servers count, and tell the caller when a counter passes a round number.
package counters

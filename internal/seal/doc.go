// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package seal makes tokens that a client carries but can neither read nor
// change: authenticated encryption under a list of keys, bound to a context that
// must be the same when the token comes back.
package seal

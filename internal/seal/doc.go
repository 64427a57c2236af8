// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package seal creates tokens that a client carries but can neither read nor modify:
// authenticated encryption with a list of keys, bound to a context that must be the same
// when the token is opened.
package seal

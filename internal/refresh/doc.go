// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package refresh marks requests that must not be answered from a cache, because the sender
// knows that the cached result is out of date.
package refresh

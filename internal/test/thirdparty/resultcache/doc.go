// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package resultcache is middleware that keeps results outside of the process.
package resultcache

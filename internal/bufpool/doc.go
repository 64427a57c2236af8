// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package bufpool provides a pool of byte slices for output that is written once and not kept.
package bufpool

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package bufpool lends byte slices to what is written once and not kept.
package bufpool

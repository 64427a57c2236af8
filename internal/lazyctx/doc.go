// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package lazyctx has a context for what there may be thousands of: it costs next to
// nothing as long as it has one child and nobody waits for it.
package lazyctx

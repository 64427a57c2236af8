// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package golden compares what tests write down with files in testdata. The flag -update
// of a test rewrites them.
package golden

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package golden compares the output of tests with files in testdata. The test flag -update
// rewrites the files.
package golden

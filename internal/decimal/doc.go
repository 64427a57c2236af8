// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package decimal compares JSON numbers exactly, in time proportional to the length of
// their text. Package math/big expands 1e1000 to a thousand digits.
package decimal

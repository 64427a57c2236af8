// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package decimal compares numbers as they are written in JSON, exactly and in time
// that grows with their length. Package math/big makes a thousand digits of 1e1000.
package decimal

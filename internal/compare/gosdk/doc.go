// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package gosdk is modelcontextprotocol/go-sdk in the comparison.
package gosdk

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package gosdk adapts modelcontextprotocol/go-sdk for the comparison.
package gosdk

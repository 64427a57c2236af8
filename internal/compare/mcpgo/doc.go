// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcpgo is mark3labs/mcp-go in the comparison.
package mcpgo

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcpgo adapts mark3labs/mcp-go for the comparison.
package mcpgo

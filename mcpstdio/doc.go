// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mcpstdio serves MCP over standard input and output, and over any other
// stream of bytes, one JSON message a line (basic/transports/stdio).
package mcpstdio

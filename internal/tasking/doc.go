// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package tasking defines what packages mcp, mcp/tasks and the translation for older
// revisions share about tasks, beyond the methods of the extension
// io.modelcontextprotocol/tasks.
package tasking

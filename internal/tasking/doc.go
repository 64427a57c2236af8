// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package tasking defines what several packages need of the extension
// io.modelcontextprotocol/tasks: its names, and who may use a task.
package tasking

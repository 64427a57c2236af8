// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package slim has tests of what a program does without the full validator of JSON
// Schema. Nothing else is in it, because a test that imports package mcphttp, or
// helpers that do, has it.
package slim

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package gen generates a typed Go client for an MCP server: a struct for each schema, and
// a method for each tool and prompt. The same lists always result in the same file.
//
// The lists are not trusted. Whatever a server sends, the result is a Go file that compiles
// and does nothing but send requests: names consist of letters and digits, and other text
// is quoted or placed in comments that it cannot end.
package gen

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package gen writes a typed Go client for an MCP server: a struct for each schema, and a
// method for each tool and prompt. The result is the same whenever the server lists the same.
//
// The lists are not trusted. Whatever a server says, the result is a Go file that compiles
// and does nothing but send requests: names are made of letters and digits only, other text
// is quoted, or is in comments that it cannot end.
package gen

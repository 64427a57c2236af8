// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package seam

// A Key is the argument of mcp.Internal.
type Key struct{}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package seam lets the transports of this module use parts of package mcp that are not in
// its API: only packages of the module can name a Key, and therefore call mcp.Internal.
package seam

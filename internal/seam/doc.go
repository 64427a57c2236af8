// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package seam lets the transports of this module use what package mcp keeps out of its
// API: only packages of the module can name a Key, and so call mcp.Internal.
package seam

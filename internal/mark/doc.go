// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package mark contains marks in contexts that middleware of this module leaves for the client,
// and the reverse.
package mark

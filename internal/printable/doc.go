// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package printable makes text that came from a peer safe to show on a terminal or in
// a line of a log.
package printable

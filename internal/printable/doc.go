// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package printable makes text from a peer safe to show on a terminal or to write to a
// log.
package printable

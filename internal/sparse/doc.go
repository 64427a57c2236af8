// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package sparse bounds the log lines that a peer can provoke, so that it cannot fill a
// disk.
package sparse

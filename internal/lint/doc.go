// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package lint checks what a server lists against the specification, and against what the
// APIs of model providers and well-known hosts accept. The command psi lint prints its
// findings, and the debug page shows them.
//
// The limits of providers and hosts are not part of the specification and may change. The
// sources cited next to them are mostly reports of what an API or a host did, found in
// November 2026; none was verified.
package lint

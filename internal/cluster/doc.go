// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package cluster tests what real processes do that share a store and are killed: its tests
// start processes, and kill them with SIGKILL. [Serve] and [Dial] let processes of one machine
// share a store in the memory of one of them.
package cluster

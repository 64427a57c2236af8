// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package cluster tests processes that share a store and are killed with SIGKILL. [Serve]
// and [Dial] let processes on one machine share a store held in the memory of one of them.
package cluster

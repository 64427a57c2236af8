// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !linux

package mcpstdio

import "os/exec"

// awaitExit waits for a process to exit and reaps it, because the standard library provides
// no other way to wait on this platform. IDs are not reused immediately.
func awaitExit(cmd *exec.Cmd) (reap func() error) { return reapNow(cmd) }

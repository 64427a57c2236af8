// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !linux

package mcpstdio

import "os/exec"

// awaitExit waits until a process has ended and reaps it: here, the standard library has
// no other way to wait. IDs are not reused at once.
func awaitExit(cmd *exec.Cmd) (reap func() error) { return reapNow(cmd) }

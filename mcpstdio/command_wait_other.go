// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !linux

package mcpstdio

import "os/exec"

// awaitExit waits until a process has ended and, since the standard library has no
// other way here, reaps it. Ids are not given out again at once.
func awaitExit(cmd *exec.Cmd) (reap func() error) { return reapNow(cmd) }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"os/exec"
	"syscall"
)

// awaitExit waits for a process to exit and leaves it a zombie until reap is called, so
// that no other process gets its ID.
func awaitExit(cmd *exec.Cmd) (reap func() error) {
	const byPID = 1 // P_PID
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(cmd.Process.Pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		switch errno {
		case 0:
			return cmd.Wait
		case syscall.EINTR:
		default: // it has been reaped elsewhere, or this is not a real Linux
			return reapNow(cmd)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package oauth

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file until it is closed. It returns false if another process has locked it.
func tryLock(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return !errors.Is(err, syscall.EWOULDBLOCK)
}

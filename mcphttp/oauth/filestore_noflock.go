// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package oauth

import "os"

// tryLock is not supported on this system.
func tryLock(*os.File) bool { return true }

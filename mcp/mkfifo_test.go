// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix && !aix && !solaris

package mcp_test

import "syscall"

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }

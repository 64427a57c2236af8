// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build aix || solaris

package mcp_test

import "errors"

// mkfifo is not supported, because package syscall has no Mkfifo here.
func mkfifo(string) error { return errors.ErrUnsupported }

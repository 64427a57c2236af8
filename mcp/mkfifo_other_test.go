// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build aix || solaris

package mcp_test

import "errors"

// mkfifo has no function in package syscall here.
func mkfifo(string) error { return errors.ErrUnsupported }

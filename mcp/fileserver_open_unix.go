// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package mcp

import (
	"os"
	"syscall"
)

// openToRead does not wait for the writer of a named pipe.
const openToRead = os.O_RDONLY | syscall.O_NONBLOCK

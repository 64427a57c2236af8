// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package mcp

import (
	"os"
	"syscall"
)

// openToRead has O_NONBLOCK so that opening a named pipe does not wait for a writer.
const openToRead = os.O_RDONLY | syscall.O_NONBLOCK

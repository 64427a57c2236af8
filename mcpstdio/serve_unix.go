// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package mcpstdio

import (
	"os"
	"os/signal"
	"syscall"
)

// surviveBrokenPipes makes writing to a broken pipe an error: on the process's
// standard files it is the death of the process otherwise.
func surviveBrokenPipes() (restore func()) {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE)
	return func() { signal.Stop(ignored) }
}

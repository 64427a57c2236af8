// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !unix

package mcpstdio

// surviveBrokenPipes does nothing where writing to a broken pipe is just an error.
func surviveBrokenPipes() (restore func()) { return func() {} }

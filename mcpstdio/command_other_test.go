// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !unix || aix

package mcpstdio_test

var systemBehaviours map[string]func() int

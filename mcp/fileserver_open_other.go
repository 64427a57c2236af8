// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !unix

package mcp

import "os"

const openToRead = os.O_RDONLY

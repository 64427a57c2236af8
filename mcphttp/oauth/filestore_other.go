// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !unix

package oauth

import "io/fs"

const openFlags = 0

// tooOpen and isForeign are not supported on this system, where user directories are
// usually protected.
func tooOpen(fs.FileInfo) bool { return false }

func isForeign(fs.FileInfo) bool { return false }

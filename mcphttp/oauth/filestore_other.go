// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !unix

package oauth

import "io/fs"

const openFlags = 0

// tooOpen and isForeign cannot be told from what is known of a file here: what is below a
// user's directories is that user's.
func tooOpen(fs.FileInfo) bool { return false }

func isForeign(fs.FileInfo) bool { return false }

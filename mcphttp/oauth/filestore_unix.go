// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !windows

package oauth

import "io/fs"

// tooOpen reports whether others than the owner have any right.
func tooOpen(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package oauth

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags follow no link, and do not wait for what is no file.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// tooOpen reports whether others than the owner have any right.
func tooOpen(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// isForeign reports whether a file belongs to another user, who could change it at any
// time. Root could do so anyway.
func isForeign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int64(stat.Uid) != int64(os.Geteuid())
}

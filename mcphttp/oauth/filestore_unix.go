// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package oauth

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags prevent following symbolic links and blocking on pipes.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// tooOpen reports whether users other than the owner have any permission.
func tooOpen(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// isForeign reports whether a file belongs to another user, who could change it at any
// time. Files of root are accepted, because root can change any file.
func isForeign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int64(stat.Uid) != int64(os.Geteuid())
}

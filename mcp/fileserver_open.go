// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
)

// A fileTree is what a file server serves.
type fileTree interface {
	// open opens a regular file or a directory. The error of anything else
	// is errNotServed.
	open(name string) (fs.File, fs.FileInfo, error)
	// follows reports whether symbolic links are followed.
	follows() bool
}

var errNotServed = errors.New("mcp: neither a regular file nor a directory, hidden, or behind a symbolic link")

// notServed is the error of a name that leads to nothing because of err.
func notServed(err error) error { return fmt.Errorf("%w: %w", errNotServed, err) }

// An fsTree is a file system.
type fsTree struct{ fs.FS }

func (t fsTree) follows() bool { return false }

// open looks for links first, and at what it is that opens: opening a named pipe
// would wait for its writer.
func (t fsTree) open(name string) (fs.File, fs.FileInfo, error) {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		if info, err := fs.Lstat(t.FS, name[:i]); err != nil || !info.IsDir() {
			return nil, nil, notServed(cmp.Or(err, fs.ErrInvalid))
		}
	}
	if info, err := fs.Lstat(t.FS, name); err != nil || !isServable(info) {
		return nil, nil, notServed(cmp.Or(err, fs.ErrInvalid))
	}
	f, err := t.Open(name)
	if err != nil {
		return nil, nil, err
	}
	return opened(f)
}

// opened checks what was opened, which may not be what was looked at.
func opened(f fs.File) (fs.File, fs.FileInfo, error) {
	info, err := f.Stat()
	if err == nil && isServable(info) {
		return f, info, nil
	}
	_ = f.Close()
	return nil, nil, notServed(cmp.Or(err, fs.ErrInvalid))
}

func isServable(info fs.FileInfo) bool { return info.IsDir() || info.Mode().IsRegular() }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A rootTree is a directory of the operating system, in which others may change
// anything at any time.
type rootTree struct {
	root   *os.Root
	links  bool // symbolic links are followed
	serves func(element string) bool
}

func (t *rootTree) follows() bool { return t.links }

var (
	errChanged = errors.New("it was replaced while it was opened")
	errLink    = errors.New("a symbolic link that is not followed")
)

// open tries again when something was replaced meanwhile, as editors do to save a file.
func (t *rootTree) open(name string) (f fs.File, info fs.FileInfo, err error) {
	for range 10 {
		w := rootWalk{rootTree: t, dirs: []*os.Root{t.root}, rest: strings.Split(name, "/")}
		f, info, err = w.open()
		w.close()
		if !errors.Is(err, errChanged) {
			break
		}
	}
	return f, info, err
}

// A rootWalk opens a name one element at a time, each in the open directory before it,
// and links as what they contain. So serves sees every element of the way that is in
// the end taken, whatever is replaced meanwhile.
type rootWalk struct {
	*rootTree
	dirs []*os.Root // the root, and the directories on the way down from it
	rest []string   // elements still to go
	past int        // elements
	met  int        // symbolic links
}

const (
	maxLinks    = 40   // in a name, as on Linux
	maxDirs     = 255  // that are open at once
	maxElements = 1000 // of a name and the links in it
)

func (w *rootWalk) dir() *os.Root { return w.dirs[len(w.dirs)-1] }

func (w *rootWalk) open() (fs.File, fs.FileInfo, error) {
	for len(w.rest) > 0 {
		element := w.rest[0]
		w.rest = w.rest[1:]
		info, err := w.step(element)
		if err != nil {
			return nil, nil, notServed(err)
		}
		if info != nil {
			return w.openFile(element, info)
		}
	}
	f, err := w.dir().Open(".")
	if err != nil {
		return nil, nil, err
	}
	return opened(f)
}

// step goes past one element. If that is the file in which the name ends, it returns
// what is known of it.
func (w *rootWalk) step(element string) (fs.FileInfo, error) {
	w.past++
	switch {
	case w.past > maxElements || len(w.dirs) > maxDirs:
		return nil, errors.New("too many directories")
	case element == "" || element == ".": // only links have these, and the next
		return nil, nil
	case element == "..":
		return nil, w.up()
	case !w.serves(element):
		return nil, errors.New("hidden")
	}
	info, err := w.dir().Lstat(element)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, w.follow(element)
	case info.IsDir():
		return nil, w.down(element, info)
	case info.Mode().IsRegular() && len(w.rest) == 0:
		return info, nil
	}
	return nil, fs.ErrInvalid
}

func (w *rootWalk) up() error {
	last := len(w.dirs) - 1
	if last == 0 {
		return errLink
	}
	_ = w.dirs[last].Close()
	w.dirs = w.dirs[:last]
	return nil
}

func (w *rootWalk) down(element string, info fs.FileInfo) error {
	dir, err := w.dir().OpenRoot(element)
	if err != nil {
		return err
	}
	w.dirs = append(w.dirs, dir)
	if now, err := dir.Stat("."); err != nil || !os.SameFile(info, now) {
		return errChanged
	}
	return nil
}

func (w *rootWalk) follow(link string) error {
	target, err := w.dir().Readlink(link)
	if err != nil {
		return err
	}
	target = filepath.ToSlash(target)
	absolute := strings.HasPrefix(target, "/") || filepath.VolumeName(target) != ""
	if w.met++; !w.links || absolute || w.met > maxLinks {
		return errLink
	}
	w.rest = append(strings.Split(target, "/"), w.rest...)
	return nil
}

func (w *rootWalk) openFile(name string, info fs.FileInfo) (fs.File, fs.FileInfo, error) {
	f, err := w.dir().OpenFile(name, openToRead, 0)
	if err != nil {
		return nil, nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		_ = f.Close()
		return nil, nil, notServed(errChanged)
	}
	return opened(f)
}

func (w *rootWalk) close() {
	for _, dir := range slices.Backward(w.dirs[1:]) {
		_ = dir.Close()
	}
}

// A fileTree is what a file server serves.
type fileTree interface {
	// open opens a regular file or a directory. The error of anything else
	// is errNotServed.
	open(name string) (fs.File, fs.FileInfo, error)
	// follows reports whether symbolic links are followed.
	follows() bool
}

var errNotServed = errors.New("mcp: neither a regular file nor a directory, hidden, or behind a symbolic link")

// notServed returns the error of a name that cannot be served because of err.
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// FS returns the files of the skill as a file system. Opening a file reads and verifies it,
// as [Loaded.ReadFile] does. Directories are listed from the entry, without a request, so
// the directories of a dynamic skill are empty. ctx is the context of all reads.
func (l *Loaded) FS(ctx context.Context) fs.FS {
	l.mustBeMade()
	return &fileSystem{ctx, l}
}

// A fileSystem is a skill as a file system, for callers that have no context.
type fileSystem struct {
	ctx context.Context //nolint:containedctx // the methods of fs.FS have none
	*Loaded
}

// Open implements [fs.FS].
func (s *fileSystem) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if entries := s.entries(name); entries != nil || name == "." {
		return &openDirectory{info: info{name: path.Base(name), isDir: true}, entries: entries}, nil
	}
	data, err := s.Loaded.ReadFile(s.ctx, name)
	if err != nil {
		return nil, err
	}
	return &openFile{Reader: bytes.NewReader(data), info: info{name: path.Base(name), size: int64(len(data))}}, nil
}

// ReadFile implements [fs.ReadFileFS].
func (s *fileSystem) ReadFile(name string) ([]byte, error) { return s.Loaded.ReadFile(s.ctx, name) }

// ReadDir implements [fs.ReadDirFS].
func (s *fileSystem) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	entries := s.entries(name)
	if entries == nil && name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return entries, nil
}

// Stat implements [fs.StatFS], without a request.
func (s *fileSystem) Stat(name string) (fs.FileInfo, error) {
	f, listed := s.files[name]
	switch {
	case !fs.ValidPath(name):
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	case listed:
		return info{name: path.Base(name), size: f.Size}, nil
	case name == "." || s.entries(name) != nil:
		return info{name: path.Base(name), isDir: true}, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// entries returns what the entry of the skill lists in a directory, sorted by name, or nil
// if there is no such directory.
func (s *fileSystem) entries(dir string) (entries []fs.DirEntry) {
	seen := map[string]bool{}
	for name, f := range s.files {
		rest, below := name, true
		if dir != "." {
			rest, below = strings.CutPrefix(name, dir+"/")
		}
		element, _, isDir := strings.Cut(rest, "/")
		if !below || seen[element] {
			continue
		}
		seen[element] = true
		child := info{name: element, isDir: isDir}
		if !isDir {
			child.size = f.Size
		}
		entries = append(entries, fs.FileInfoToDirEntry(child))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// info describes a file or a directory.
type info struct {
	name  string
	size  int64
	isDir bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.isDir }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.isDir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type openFile struct {
	*bytes.Reader

	info info
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openDirectory struct {
	info    info
	entries []fs.DirEntry // not read yet
}

func (d *openDirectory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDirectory) Close() error               { return nil }

func (d *openDirectory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: fs.ErrInvalid}
}

// ReadDir implements [fs.ReadDirFile].
func (d *openDirectory) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.entries) {
		n = len(d.entries)
	}
	read := d.entries[:n:n]
	d.entries = d.entries[n:]
	return read, nil
}

// escape escapes a path for a URI.
func escape(name string) string { return (&url.URL{Path: name}).EscapedPath() }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/filetype"
	"github.com/go-psi/psi/internal/uritemplate"
)

// A rootTree is a directory of the operating system, which may be changed concurrently.
type rootTree struct {
	root   *os.Root
	links  bool // whether symbolic links are followed
	serves func(element string) bool
}

func (t *rootTree) follows() bool { return t.links }

var (
	errChanged = errors.New("it was replaced while it was opened")
	errLink    = errors.New("a symbolic link that is not followed")
)

// open retries if a file or directory was replaced in the meantime: editors do that to save
// a file.
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

// A rootWalk opens a name one element at a time, each relative to the open directory before
// it, and replaces links by their targets. So serves checks every element of the path that is
// actually taken, even if files are replaced concurrently.
type rootWalk struct {
	*rootTree
	dirs []*os.Root // the root and the open directories below it
	rest []string   // elements still to be opened
	past int        // number of elements processed
	met  int        // number of symbolic links followed
}

const (
	maxLinks    = 40   // symbolic links in a name, as on Linux
	maxDirs     = 255  // directories open at the same time
	maxElements = 1000 // elements of a name and of the links in it
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

// step processes one element. If it is the file at the end of the name, step returns its
// FileInfo.
func (w *rootWalk) step(element string) (fs.FileInfo, error) {
	w.past++
	switch {
	case w.past > maxElements || len(w.dirs) > maxDirs:
		return nil, errors.New("too many directories")
	case element == "" || element == ".": // in links, or the name of the root
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

// A fileTree is a tree of files to serve.
type fileTree interface {
	// open opens a regular file or a directory. For anything else, the error wraps
	// errNotServed.
	open(name string) (fs.File, fs.FileInfo, error)
	// follows reports whether symbolic links are followed.
	follows() bool
}

var errNotServed = errors.New("mcp: neither a regular file nor a directory, hidden, or behind a symbolic link")

// notServed returns the error for a name that cannot be served because of err.
func notServed(err error) error { return fmt.Errorf("%w: %w", errNotServed, err) }

// An fsTree is the fileTree of an fs.FS.
type fsTree struct{ fs.FS }

func (t fsTree) follows() bool { return false }

// open checks for links and for the type of the file before opening it: opening a named pipe
// would wait for a writer.
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

// opened checks the type of an open file, which may differ from the file seen by Lstat. It
// closes f if the file cannot be served.
func opened(f fs.File) (fs.File, fs.FileInfo, error) {
	info, err := f.Stat()
	if err == nil && isServable(info) {
		return f, info, nil
	}
	_ = f.Close()
	return nil, nil, notServed(cmp.Or(err, fs.ErrInvalid))
}

func isServable(info fs.FileInfo) bool { return info.IsDir() || info.Mode().IsRegular() }

// Limits on the work that one request can cause.
const (
	maxEntries     = 65_536 // entries of one directory
	maxPageFiles   = 1000   // files on a page of the list, of some 200 bytes each
	maxPageEntries = 65_536 // directory entries read for a page, which visits at least one path
)

var errTooManyEntries = errors.New("mcp: the directory has too many entries")

// list is a lister. A cursor is the path at which the previous page ended. The page lists the files after it in walk order, even if files were added or removed
// in between.
func (s *fileServer) list(ctx context.Context, template string, p *ListParams) (*ListResourcesResult, error) {
	res := &ListResourcesResult{Cacheable: s.opts.Cache}
	if s.opts.WithinRoots {
		return res, nil
	}
	t, err := uritemplate.Parse(template)
	if err != nil {
		return nil, err
	}
	w := fileWalk{server: s, template: t}
	var after []string
	if p.Cursor != nil {
		if !fs.ValidPath(*p.Cursor) {
			return nil, badCursor()
		}
		after = strings.Split(*p.Cursor, "/")
	}
	if err := w.list(ctx, ".", after); err != nil {
		return nil, err
	}
	res.Resources = w.files
	if w.more {
		res.NextCursor = &w.last
	}
	return res, nil
}

// fileWalk collects one page of the list.
type fileWalk struct {
	server   *fileServer
	template *uritemplate.Template
	files    []*Resource
	last     string // the last path visited, or ""
	read     int    // directory entries read, including entries that are not served
	more     bool   // whether the page is full
}

// list lists the files in dir that come after the path after. If after is empty, it lists
// all files in dir.
func (w *fileWalk) list(ctx context.Context, dir string, after []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all, err := w.server.readDir(dir)
	if err != nil {
		return err
	}
	w.read += len(all)
	entries := w.server.served(all)
	if len(after) > 0 {
		i, found := slices.BinarySearchFunc(entries, after[0], func(e fs.DirEntry, name string) int { return cmp.Compare(e.Name(), name) })
		entries = entries[i:]
		if found {
			w.resume(ctx, path.Join(dir, after[0]), entries[0], after[1:])
			entries = entries[1:]
		}
	}
	for _, e := range entries {
		if w.more {
			return nil
		}
		w.visit(ctx, path.Join(dir, e.Name()), e)
	}
	return nil
}

// resume continues in the directory at or in which the previous page ended.
func (w *fileWalk) resume(ctx context.Context, name string, e fs.DirEntry, after []string) {
	if e.IsDir() {
		_ = w.list(ctx, name, after) // a directory that cannot be read is omitted
	}
}

// visit lists one entry. Every page visits at least one entry, so that listing makes progress.
func (w *fileWalk) visit(ctx context.Context, name string, e fs.DirEntry) {
	if len(w.files) >= w.server.pageSize || w.read > maxPageEntries && w.last != "" {
		w.more = true
		return
	}
	w.last = name
	if e.IsDir() {
		_ = w.list(ctx, name, nil) // a directory that cannot be read is omitted
		return
	}
	info, err := w.server.entryInfo(path.Dir(name), e)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if r := w.server.describe(w.template, name, info); r != nil {
		w.files = append(w.files, r)
	}
}

// describe returns the list item for a file, or nil if the file has no URI.
func (s *fileServer) describe(t *uritemplate.Template, name string, info fs.FileInfo) *Resource {
	uri, ok := uriOf(t, name)
	if !ok {
		return nil
	}
	r := &Resource{URI: uri, Name: name, MIMEType: filetype.ByName(name), Size: new(info.Size())}
	if r.MIMEType == "" {
		r.MIMEType = s.sniff(name)
	}
	if modified := info.ModTime(); !modified.IsZero() {
		r.Annotations = &Annotations{LastModified: modified.UTC().Truncate(time.Second)}
	}
	return r
}

// sniff guesses the type of a file from its first bytes, for names without a known
// extension. Reading the whole file may yield another type.
func (s *fileServer) sniff(name string) string {
	f, _, err := s.tree.open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, filetype.SniffLength)
	n, err := io.ReadFull(f, head)
	if err == nil { // the file may be longer, and the last character may be cut off
		return filetype.Of(filetype.WithoutCutRune(head))
	}
	return filetype.Of(head[:n])
}

// entries returns the served entries of an open directory, sorted by name.
func (s *fileServer) entries(dir string, f fs.File) ([]fs.DirEntry, error) {
	all, err := s.readEntries(dir, f)
	return s.served(all), err
}

// served returns the entries that are served, sorted by name. It modifies all.
func (s *fileServer) served(all []fs.DirEntry) []fs.DirEntry {
	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool {
		served := e.IsDir() || e.Type().IsRegular() || s.tree.follows() && e.Type()&fs.ModeSymlink != 0
		return !served || !s.serves(e.Name())
	})
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all
}

func (s *fileServer) readDir(dir string) ([]fs.DirEntry, error) {
	f, _, err := s.tree.open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return s.readEntries(dir, f)
}

func (s *fileServer) readEntries(dir string, f fs.File) ([]fs.DirEntry, error) {
	d, ok := f.(fs.ReadDirFile)
	if fsys, isFS := s.tree.(fsTree); isFS && !ok {
		return fs.ReadDir(fsys.FS, dir)
	}
	var all []fs.DirEntry
	for {
		some, err := d.ReadDir(1024)
		all = append(all, some...)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(all) > maxEntries:
			return nil, errTooManyEntries
		}
	}
}

// entryInfo returns the FileInfo of an entry. For a symbolic link, it returns the FileInfo of
// the target.
func (s *fileServer) entryInfo(dir string, e fs.DirEntry) (fs.FileInfo, error) {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Info()
	}
	f, info, err := s.tree.open(path.Join(dir, e.Name()))
	if err != nil {
		return nil, err
	}
	return info, f.Close()
}

// complete suggests the entries of the directory typed so far whose names begin with the rest
// of the value.
func (s *fileServer) complete(_ context.Context, p *CompleteParams) ([]string, error) {
	dir, prefix := path.Split(p.Argument.Value)
	name, ok := s.nameOf("", dir)
	if !ok {
		return nil, nil
	}
	all, err := s.readDir(name)
	if err != nil {
		return nil, nil //nolint:nilerr // what is not there, or is no directory, suggests nothing
	}
	var found []string
	for _, e := range s.served(all) {
		info, err := s.entryInfo(name, e)
		if err != nil || !strings.HasPrefix(e.Name(), prefix) || !utf8.ValidString(e.Name()) {
			continue
		}
		if info.IsDir() {
			found = append(found, dir+e.Name()+"/")
		} else {
			found = append(found, dir+e.Name())
		}
	}
	return found, nil
}

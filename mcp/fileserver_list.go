// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/filetype"
	"github.com/go-psi/psi/internal/uritemplate"
)

// Bounds on the work that one request can cause.
const (
	maxEntries     = 65_536 // of a directory
	maxPageEntries = 65_536 // of all directories that a page of the list looks at, but for the first
)

var errTooManyEntries = errors.New("mcp: the directory has too many entries")

func (s *fileServer) cacheHints() Cacheable { return s.opts.Cache }

// ListResources implements [ResourceLister]. A cursor is the path at which the
// page before ended: what comes after it, in the order of the walk, is listed,
// whatever was added or removed in between.
func (s *fileServer) ListResources(ctx context.Context, template string, cursor *string) (*ListResourcesResult, error) {
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
	if cursor != nil {
		if !fs.ValidPath(*cursor) {
			return nil, badCursor()
		}
		after = strings.Split(*cursor, "/")
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
	last     string // the path that was looked at last, "" for none
	read     int    // entries of directories, those that are not served included
	more     bool   // the page is full
}

// list lists what is in dir, but for what the path after and all before it names.
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

// resume goes on in the directory in which, or with which, the page before ended.
func (w *fileWalk) resume(ctx context.Context, name string, e fs.DirEntry, after []string) {
	if e.IsDir() {
		_ = w.list(ctx, name, after) // a directory that cannot be read is left out
	}
}

// visit lists one entry. A page always gets past one, or it would never end.
func (w *fileWalk) visit(ctx context.Context, name string, e fs.DirEntry) {
	if len(w.files) >= w.server.opts.PageSize || w.read > maxPageEntries && w.last != "" {
		w.more = true
		return
	}
	w.last = name
	if e.IsDir() {
		_ = w.list(ctx, name, nil) // a directory that cannot be read is left out
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

// describe returns the list item of a file, nil if the file has no URI.
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
// extension. A read of the whole file may find another type.
func (s *fileServer) sniff(name string) string {
	f, _, err := s.tree.open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, filetype.SniffLength)
	n, err := io.ReadFull(f, head)
	if err == nil { // there may be more, and the last character may be cut
		return filetype.Of(filetype.WithoutCutRune(head))
	}
	return filetype.Of(head[:n])
}

// entries returns the served entries of an open directory, by name.
func (s *fileServer) entries(dir string, f fs.File) ([]fs.DirEntry, error) {
	all, err := s.readEntries(dir, f)
	return s.served(all), err
}

// served returns those entries of a directory that are served, by name.
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

// entryInfo describes an entry, or the target of a link if links are followed.
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

// complete suggests the entries of the directory that was typed so far.
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

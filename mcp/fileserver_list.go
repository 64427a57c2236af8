// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"mime"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	r := &Resource{URI: uri, Name: name, MIMEType: typeByName(name), Size: new(info.Size())}
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
	head := make([]byte, sniffLength)
	n, err := io.ReadFull(f, head)
	if err == nil { // there may be more, and the last character may be cut
		return typeOf(withoutCutRune(head))
	}
	return typeOf(head[:n])
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

const (
	typeDirectory = "inode/directory" // of the shared MIME-info database (server/resources)
	typePlain     = "text/plain"
	typeBinary    = "application/octet-stream"
)

// sniffLength is the number of bytes that are used to guess a type.
const sniffLength = 512

// knownTypes come before the table of the operating system, which is missing on
// some machines, and has surprises for source code.
var knownTypes = map[string]string{
	".c": "text/x-c", ".cc": "text/x-c++", ".cpp": "text/x-c++", ".h": "text/x-c",
	".conf": typePlain, ".css": "text/css", ".csv": "text/csv", ".diff": "text/x-diff",
	".gif": "image/gif", ".go": "text/x-go", ".gz": "application/gzip",
	".htm": "text/html", ".html": "text/html", ".ini": typePlain,
	".java": "text/x-java", ".jpeg": "image/jpeg", ".jpg": "image/jpeg",
	".js": "text/javascript", ".json": "application/json", ".jsonl": "application/jsonl",
	".jsx": "text/javascript", ".log": typePlain, ".md": "text/markdown",
	".mjs": "text/javascript", ".mp3": "audio/mpeg", ".mp4": "video/mp4",
	".patch": "text/x-diff", ".pdf": "application/pdf", ".png": "image/png",
	".proto": "text/x-protobuf", ".py": "text/x-python", ".rb": "text/x-ruby",
	".rs": "text/x-rust", ".sh": "text/x-shellscript", ".sql": "application/sql",
	".svg": "image/svg+xml", ".tar": "application/x-tar", ".toml": "application/toml",
	".ts": "text/x-typescript", ".tsv": "text/tab-separated-values", ".tsx": "text/x-typescript",
	".txt": typePlain, ".wasm": "application/wasm", ".wav": "audio/wav",
	".webp": "image/webp", ".xml": "application/xml", ".yaml": "application/yaml",
	".yml": "application/yaml", ".zip": "application/zip",
}

// typeByName returns the type of the extension of a name, or "".
func typeByName(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if known, ok := knownTypes[ext]; ok {
		return known
	}
	found, _, _ := strings.Cut(mime.TypeByExtension(ext), ";")
	return found
}

// signatures begin files of the types that clients can show.
var signatures = []struct{ head, kind string }{
	{"\x89PNG\r\n\x1a\n", "image/png"},
	{"\xff\xd8\xff", "image/jpeg"},
	{"GIF8", "image/gif"},
	{"%PDF-", "application/pdf"},
	{"PK\x03\x04", "application/zip"},
	{"\x1f\x8b", "application/gzip"},
	{"OggS", "application/ogg"},
	{"ID3", "audio/mpeg"},
	{"\x00asm", "application/wasm"},
}

// typeOf guesses the type of data.
func typeOf(data []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.head)) {
			return s.kind
		}
	}
	switch {
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	case isUTF8Text(data):
		return typePlain
	}
	return typeBinary
}

// isText reports whether data of the type is sent as text.
func isText(kind string, data []byte) bool { return !isBinaryType(kind) && isUTF8Text(data) }

func isUTF8Text(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// isBinaryType reports whether a type is never text, even if some file of it
// happens to be UTF-8.
func isBinaryType(kind string) bool {
	if strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+json") {
		return false
	}
	switch family, _, _ := strings.Cut(kind, "/"); family {
	case "image", "audio", "video", "font":
		return true
	}
	switch kind {
	case typeBinary, "application/pdf", "application/zip", "application/gzip", "application/x-tar", "application/wasm", "application/ogg":
		return true
	}
	return false
}

// withoutCutRune drops the beginning of a character at the end of data.
func withoutCutRune(data []byte) []byte {
	for i := len(data) - 1; i >= max(0, len(data)-utf8.UTFMax); i-- {
		if utf8.RuneStart(data[i]) {
			if !utf8.FullRune(data[i:]) {
				return data[:i]
			}
			break
		}
	}
	return data
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/go-psi/psi/internal/filetype"
	"github.com/go-psi/psi/internal/uritemplate"
)

// FileServerOptions configure [FileServerFS] and [FileServerRoot]. Nil means the
// zero FileServerOptions.
type FileServerOptions struct {
	// Resource describes the template. Nil means the zero Resource.
	Resource *Resource
	// Hidden also serves dot-files and files below dot-directories. If it is false, names
	// that the file system may treat as equivalent to a hidden name are hidden as well: on
	// Windows, names with a tilde followed by a digit, like short names.
	Hidden bool
	// WithinRoots serves only files within the roots of the client, which is asked for
	// them; see [Roots]. The template must produce file URIs. Nothing is listed, because a
	// client cannot be asked during a list request.
	WithinRoots bool
	// MaxBytes is the maximum size of a file that can be read. Larger files are still listed.
	// 0 means 16 MiB.
	MaxBytes int64
	// Cache holds the cache hints of lists and files. The zero value means private and not
	// cacheable.
	Cache Cacheable
}

func (o *FileServerOptions) withDefaults() FileServerOptions {
	var opts FileServerOptions
	if o != nil {
		opts = *o
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 16 << 20
	}
	opts.MaxBytes = min(opts.MaxBytes, math.MaxInt-bytes.MinRead)
	return opts
}

// pathVariable is the name of the variable in a file server's template.
const pathVariable = "path"

// FileServerFS returns a handler that serves the files of a file system. Register it under a
// template whose only variable is path:
//
//	mux.Resource("file:///docs/{+path}", mcp.FileServerFS(os.DirFS("docs"), nil))
//
// All regular files are listed, with size, MIME type and modification time, in the order of
// [fs.WalkDir]. Directories are not listed, but can be read: their type is inode/directory,
// and their text has a line for each entry, a URI reference relative to the directory. The
// references to subdirectories end in a slash. A file is sent as text if its type is not
// binary and its content is valid UTF-8 without NUL bytes, otherwise as a blob. Paths are
// completed.
//
// The text of a directory names all served entries, for every caller. Middleware that hides
// single files from some callers, such as middleware.Visible, does not remove their names
// from it: keep restricted files in separate directories, and hide these directories and
// everything below them.
//
// Reading a file that does not exist, is hidden or lies outside the root returns
// [NewResourceNotFoundError], even if the URI contains dots, encoded slashes or backslashes.
// If fsys implements [fs.ReadLinkFS], as os.DirFS and its fs.Sub do, reading a path that
// contains a symbolic link returns the same error. Whether other file systems follow links is
// up to them; a wrapper around os.DirFS without that interface does. Links are checked before
// a file is opened: use [FileServerRoot] for a tree that may be changed at the same time.
//
// If the file system ignores case, or accepts several spellings of a name, a file can be
// read by URIs other than the listed one. Middleware that decides by URI must then allow
// known URIs rather than hide single files.
//
// The list omits directories of more than 65,536 entries, files whose name is not valid UTF-8
// or contains a backslash, and files whose URI would be longer than 8 KiB.
func FileServerFS(fsys fs.FS, opts *FileServerOptions) Handler {
	if fsys == nil {
		panic(registrationErrorf("FileServerFS at %s: the file system is nil", callSite()))
	}
	s := newFileServer(opts)
	s.tree = fsTree{fsys}
	return s
}

// FileServerRoot is like [FileServerFS] but serves a directory of the operating system.
// Symbolic links within the directory are followed, unless WithinRoots is set or the link
// leads to or through a hidden file; the list does not follow links to directories. Only
// regular files and directories inside root that are not hidden are served, even if the
// directory is changed at the same time. Files more than 255 directories deep are not served.
// root must not be closed while the handler is in use.
func FileServerRoot(root *os.Root, opts *FileServerOptions) Handler {
	if root == nil {
		panic(registrationErrorf("FileServerRoot at %s: the root is nil", callSite()))
	}
	s := newFileServer(opts)
	// The target of a link cannot be compared with the client's roots.
	s.tree = &rootTree{root: root, links: !s.opts.WithinRoots, serves: s.serves}
	return s
}

type fileServer struct {
	tree     fileTree
	opts     FileServerOptions
	pageSize int // maxPageFiles, except in tests
	resource Resource
}

func newFileServer(opts *FileServerOptions) *fileServer {
	s := &fileServer{opts: opts.withDefaults(), pageSize: maxPageFiles}
	if s.opts.Resource != nil {
		s.resource = *s.opts.Resource
	}
	if s.resource.Completers == nil && !s.opts.WithinRoots {
		s.resource.Completers = map[string]Completer{pathVariable: s.complete}
	}
	if s.resource.Subscribe == nil {
		s.resource.Subscribe = s.subscribe
	}
	return s
}

// subscribe allows subscriptions to the files that the caller can read. Roots are not
// checked: a client cannot be asked for them during a subscription request.
func (s *fileServer) subscribe(ctx context.Context, uri string) error {
	value := RequestFromContext(ctx).PathValue(pathVariable)
	name, ok := s.nameOf(uri, value)
	if !ok {
		return NewResourceNotFoundError(uri)
	}
	f, info, err := s.tree.open(name)
	if err != nil {
		return s.peerError(uri, err)
	}
	defer f.Close()
	if strings.HasSuffix(value, "/") && !info.IsDir() {
		return fileNotFound(uri, errNotServed)
	}
	return nil
}

func (s *fileServer) Describe() Description { return &s.resource }

// checkTemplate implements [templateChecker].
func (s *fileServer) checkTemplate(t *uritemplate.Template) error {
	const example = "file:///docs/{+path}"
	if t == nil || len(t.Names()) != 1 || t.Names()[0] != pathVariable {
		return fmt.Errorf("a file server needs a template with the variable %q and no other, such as %q", pathVariable, example)
	}
	uri, ok := uriOf(t, "a/b")
	if !ok || strings.Contains(strings.ToLower(uri), "%2f") {
		return fmt.Errorf("a file server needs a template that keeps the slashes of paths, such as %q", example)
	}
	if _, ok := filePath(uri); s.opts.WithinRoots && !ok {
		return errors.New("a file server with WithinRoots needs a template of file URIs, to compare them with the roots")
	}
	return nil
}

func (s *fileServer) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	uri := req.Name()
	name, ok := s.nameOf(uri, req.PathValue(pathVariable))
	if !ok {
		return nil, NewResourceNotFoundError(uri)
	}
	if s.opts.WithinRoots {
		roots, err := Roots(ctx, "roots")
		if err != nil {
			return nil, err
		}
		if !withinRoots(uri, roots) {
			return nil, NewResourceNotFoundError(uri)
		}
	}
	part := &ResourceContents{URI: uri}
	if err := s.read(name, strings.HasSuffix(req.PathValue(pathVariable), "/"), part); err != nil {
		return nil, s.peerError(uri, err)
	}
	return &ReadResourceResult{Cacheable: s.opts.Cache, Contents: []*ResourceContents{part}}, nil
}

// read reads a file or directory into part. If onlyDir is true, it must be a directory.
func (s *fileServer) read(name string, onlyDir bool, part *ResourceContents) error {
	f, info, err := s.tree.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	switch {
	case info.IsDir():
		return s.readDirectory(name, f, part)
	case onlyDir:
		return errNotServed
	}
	return s.readFile(name, f, info.Size(), part)
}

// fileNotFound returns the error for a file that is not served, with the cause for logs.
func fileNotFound(uri string, why error) *Error {
	e := NewResourceNotFoundError(uri)
	e.Cause = why
	return e
}

// peerError returns the error for the peer, without the text of the operating system. If the
// root cannot be opened either, it is an internal error: the file may exist.
func (s *fileServer) peerError(uri string, err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if errors.Is(err, errNotServed) || errors.Is(err, fs.ErrNotExist) {
		root, _, rootErr := s.tree.open(".")
		if rootErr == nil {
			_ = root.Close()
			return fileNotFound(uri, err)
		}
		err = rootErr
	}
	return &Error{Code: CodeInternalError, Message: fmt.Sprintf("resource %q could not be read", uri), Cause: err}
}

func (s *fileServer) readFile(name string, f fs.File, size int64, part *ResourceContents) error {
	if size > s.opts.MaxBytes {
		return s.tooLarge(part.URI)
	}
	var content bytes.Buffer
	content.Grow(int(max(size, 0)) + bytes.MinRead)
	if _, err := content.ReadFrom(io.LimitReader(f, s.opts.MaxBytes+1)); err != nil {
		return err
	}
	if int64(content.Len()) > s.opts.MaxBytes { // it grew, or Stat reported a smaller size
		return s.tooLarge(part.URI)
	}
	data := content.Bytes()
	if part.MIMEType = filetype.ByName(name); part.MIMEType == "" {
		part.MIMEType = filetype.Of(data)
	}
	if filetype.IsText(part.MIMEType, data) {
		part.Text = string(data)
	} else {
		part.Blob = data
	}
	return nil
}

func (s *fileServer) tooLarge(uri string) error {
	return Errorf(CodeInternalError, "resource %q is larger than %d bytes, which is what this server reads at most", uri, s.opts.MaxBytes)
}

// readDirectory reads the names in a directory into the text of part.
func (s *fileServer) readDirectory(name string, f fs.File, part *ResourceContents) error {
	entries, err := s.entries(name, f)
	if errors.Is(err, errTooManyEntries) {
		return Errorf(CodeInternalError, "resource %q has more than %d entries, which is what this server reads at most", part.URI, maxEntries)
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		info, err := s.entryInfo(name, e)
		if err != nil {
			continue
		}
		text.WriteString((&url.URL{Path: e.Name()}).String())
		if info.IsDir() {
			text.WriteByte('/')
		}
		text.WriteByte('\n')
	}
	part.Text, part.MIMEType = text.String(), filetype.Directory
	return nil
}

// nameOf returns the name in the file system for a URI, given the value of its path
// variable. It reports false for URIs that appear in no list or directory, such as URIs with
// encoded slashes: middleware that examines URIs can rely on their slashes.
func (s *fileServer) nameOf(uri, value string) (string, bool) {
	if strings.Contains(strings.ToLower(uri), "%2f") {
		return "", false
	}
	name := strings.TrimSuffix(value, "/")
	if name == "" {
		return ".", value == ""
	}
	if name == "." || !fs.ValidPath(name) {
		return "", false
	}
	for part := range strings.SplitSeq(name, "/") {
		if !s.serves(part) {
			return "", false
		}
	}
	return name, true
}

// serves reports whether files and directories with the given path element are served.
func (s *fileServer) serves(element string) bool {
	return !strings.ContainsAny(element, "\\\x00") && (s.opts.Hidden || !isHidden(element, runtime.GOOS == "windows"))
}

// isHidden reports whether a name begins with a dot, or may be an alias of a name that
// does: HFS+ ignores some characters, and Windows has short names, such as GIT~1 for .git.
func isHidden(element string, shortNames bool) bool {
	const ignored = "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"
	if strings.HasPrefix(strings.TrimLeft(element, ignored), ".") {
		return true
	}
	_, number, short := strings.Cut(element, "~")
	return shortNames && short && number != "" && '0' <= number[0] && number[0] <= '9'
}

// uriOf returns the URI of a file. It reports false if t cannot expand to a URI that matches
// the same file.
func uriOf(t *uritemplate.Template, name string) (string, bool) {
	uri, err := t.Expand(map[string]string{pathVariable: escapePath(name)})
	if err != nil {
		return "", false
	}
	values, ok := t.Match(uri)
	return uri, ok && values.Get(pathVariable) == name
}

// escapePath encodes a path for a URI.
func escapePath(name string) string { return (&url.URL{Path: name}).EscapedPath() }

// withinRoots reports whether a file URI names a root or a file below a root.
func withinRoots(uri string, roots []Root) bool {
	file, ok := filePath(uri)
	if !ok {
		return false
	}
	for _, r := range roots {
		root, ok := filePath(r.URI)
		if ok && (file == root || strings.HasPrefix(file, strings.TrimSuffix(root, "/")+"/")) {
			return true
		}
	}
	return false
}

// filePath returns the path of a file URI for this host. It reports false for URIs with an
// unencoded question mark or number sign, which would hide the rest of the path.
func filePath(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" ||
		!strings.HasPrefix(u.Path, "/") || strings.ContainsAny(uri, "?#") {
		return "", false
	}
	return path.Clean(u.Path), true
}

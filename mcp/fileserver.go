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

	"github.com/go-psi/psi/internal/uritemplate"
)

// FileServerOptions configure [FileServerFS] and [FileServerRoot]. Nil means the
// zero FileServerOptions.
type FileServerOptions struct {
	// Resource describes the template. Nil means the zero Resource.
	Resource *Resource
	// Hidden also serves files and directories whose name begins with a dot, and
	// what is below such directories. Where it is false, names that a file system
	// may take for such a name are hidden as well: on Windows those with a tilde
	// before a digit, which short names have.
	Hidden bool
	// WithinRoots serves only what lies within the roots that the client names
	// when it is asked for them; see [Roots]. The template must make file URIs.
	// Since a client cannot be asked while it lists, nothing is listed then.
	WithinRoots bool
	// MaxBytes is how large a file may be to be read. Larger ones are listed all
	// the same. 0 means 16 MiB.
	MaxBytes int64
	// PageSize is how many files a page of the list holds at most. 0 means 1000.
	PageSize int
	// Cache are the hints of what is listed and read; the zero value means do not
	// keep it, and private.
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
	if opts.PageSize <= 0 {
		opts.PageSize = 1000
	}
	return opts
}

// pathVariable is the variable of a file server's template.
const pathVariable = "path"

// FileServerFS makes a handler of the files in a file system, to be registered
// under a template that has the variable path and no other:
//
//	mux.Resource("file:///docs/{+path}", mcp.FileServerFS(os.DirFS("docs"), nil))
//
// All regular files stand in resources/list, each with its size, its MIME type
// and the time it was modified, in the order of [fs.WalkDir]. A directory is not
// listed, but can be read: its contents have the type inode/directory, and the
// text has a line for each entry, a URI reference relative to the directory, with
// a slash at the end of what is itself a directory. Files are text if their type
// allows it and all of them is UTF-8, otherwise binary. Paths complete.
//
// The text of a directory names everything that is served in it, to every caller.
// Middleware that hides single files from some callers, such as middleware.Visible,
// does not take their names out of it: keep what only some callers may see in
// directories of its own, and hide those and what is below them.
//
// What is not there, hidden or not below the file system's root is
// [NewResourceNotFoundError], however its URI is written: with dots, with encoded
// slashes, with backslashes. So is any path that has a symbolic link in it, if
// fsys implements [fs.ReadLinkFS], as os.DirFS and what fs.Sub makes of it do. Any
// other file system is taken at its word: if it follows links, as a wrapper around
// os.DirFS without that interface does, then so does the handler. Links are looked
// for before a file is opened; a tree that somebody else can change at the same
// time is served with [FileServerRoot].
//
// Where the file system ignores case, or spells a name in several ways, a file can be
// read by more URIs than the one that is listed. Middleware that decides by URI must not
// hide a single file there, but only allow what it knows.
//
// Directories of more than 65,536 entries, files whose name is not UTF-8 or has a
// backslash, and files whose URI would be longer than 8 KiB, are left out of the
// list.
func FileServerFS(fsys fs.FS, opts *FileServerOptions) Handler {
	if fsys == nil {
		panic(fmt.Sprintf("mcp: FileServerFS at %s: the file system is nil", callSite()))
	}
	s := newFileServer(opts)
	s.tree = fsTree{fsys}
	return s
}

// FileServerRoot is [FileServerFS] for a directory of the operating system.
// Symbolic links that stay in it are followed, unless the options say WithinRoots or
// the link leads to, or through, what is hidden; a link to a directory is not followed
// by the list. That nothing leads out of the directory, to what is hidden, or to
// anything that is not a regular file or a directory holds whatever happens in it
// meanwhile. What is more than 255 directories deep is not served. Root must not be
// closed while the handler is used.
func FileServerRoot(root *os.Root, opts *FileServerOptions) Handler {
	if root == nil {
		panic(fmt.Sprintf("mcp: FileServerRoot at %s: the root is nil", callSite()))
	}
	s := newFileServer(opts)
	// Where a link leads cannot be compared with the client's roots.
	s.tree = &rootTree{root: root, links: !s.opts.WithinRoots, serves: s.serves}
	return s
}

type fileServer struct {
	tree     fileTree
	opts     FileServerOptions
	resource Resource
}

func newFileServer(opts *FileServerOptions) *fileServer {
	s := &fileServer{opts: opts.withDefaults()}
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

// subscribe lets callers subscribe to what they can read. Roots are not compared: a
// client cannot be asked for them while it listens.
func (s *fileServer) subscribe(ctx context.Context, uri string) error {
	value := RequestFromContext(ctx).PathValue(pathVariable)
	name, ok := s.nameOf(uri, value)
	if !ok {
		return NewResourceNotFoundError(uri)
	}
	f, info, err := s.tree.open(name)
	if err != nil {
		return fileProblem(uri, err)
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
		return nil, fileProblem(uri, err)
	}
	return &ReadResourceResult{Cacheable: s.opts.Cache, Contents: []*ResourceContents{part}}, nil
}

// read reads a file or a directory, or only a directory.
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

// fileNotFound tells a log why.
func fileNotFound(uri string, why error) *Error {
	e := NewResourceNotFoundError(uri)
	e.Cause = why
	return e
}

// fileProblem does not tell the peer what an operating system says.
func fileProblem(uri string, err error) error {
	var coded *Error
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, errNotServed) || errors.Is(err, fs.ErrNotExist):
		return fileNotFound(uri, err)
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
	if int64(content.Len()) > s.opts.MaxBytes { // it has grown, or hides its size
		return s.tooLarge(part.URI)
	}
	data := content.Bytes()
	if part.MIMEType = typeByName(name); part.MIMEType == "" {
		part.MIMEType = typeOf(data)
	}
	if isText(part.MIMEType, data) {
		part.Text = string(data)
	} else {
		part.Blob = data
	}
	return nil
}

func (s *fileServer) tooLarge(uri string) error {
	return Errorf(CodeInternalError, "resource %q is larger than %d bytes, which is what this server reads at most", uri, s.opts.MaxBytes)
}

// readDirectory makes text of the names in a directory.
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
	part.Text, part.MIMEType = text.String(), typeDirectory
	return nil
}

// nameOf is the name in the file system of what a URI asks for, given the value
// of its path variable. It is false for everything that no list and no directory
// would have named: middleware that looks at URIs can rely on their slashes.
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

// serves reports whether a file or directory may have the name.
func (s *fileServer) serves(element string) bool {
	return !strings.ContainsAny(element, "\\\x00") && (s.opts.Hidden || !isHidden(element, runtime.GOOS == "windows"))
}

// isHidden reports whether a name begins with a dot, or may be another one of a file
// whose name does: HFS+ ignores some characters, and Windows has short names, such as
// GIT~1 for .git.
func isHidden(element string, shortNames bool) bool {
	const ignored = "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"
	if strings.HasPrefix(strings.TrimLeft(element, ignored), ".") {
		return true
	}
	_, number, short := strings.Cut(element, "~")
	return shortNames && short && number != "" && '0' <= number[0] && number[0] <= '9'
}

// uriOf writes the URI of a file, if there is one that leads back to it.
func uriOf(t *uritemplate.Template, name string) (string, bool) {
	uri, err := t.Expand(map[string]string{pathVariable: escapePath(name)})
	if err != nil {
		return "", false
	}
	values, ok := t.Match(uri)
	return uri, ok && values.Get(pathVariable) == name
}

// escapePath encodes what would not be part of a path in a URI.
func escapePath(name string) string { return (&url.URL{Path: name}).EscapedPath() }

// withinRoots reports whether a file URI is that of a root, or of something below
// one.
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

// filePath is the path in a file URI of this machine. A question mark or a number
// sign that is not encoded would hide the rest of the path.
func filePath(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" ||
		!strings.HasPrefix(u.Path, "/") || strings.ContainsAny(uri, "?#") {
		return "", false
	}
	return path.Clean(u.Path), true
}

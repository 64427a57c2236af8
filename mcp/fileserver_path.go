// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"io/fs"
	"net/url"
	"path"
	"runtime"
	"strings"

	"github.com/go-psi/psi/internal/uritemplate"
)

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
